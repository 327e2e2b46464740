// The live screen, on a terminal with keyboard input.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { makeQueues } from './support/fixture.ts'
import { sharedNode } from './support/node.ts'
import { type LiveRun, liveOnTerminal, plain, terminalMissing } from './support/rouse.ts'

const node = await sharedNode()
const env = { ROUSE_URL: node.url, TZ: 'UTC' }
const patience = { timeoutMs: 60_000 }
const options = { timeout: 120_000, skip: await terminalMissing() }

const enter = '\u001b[?1049h'
const leave = '\u001b[?1049l'
const home = '\u001b[H'
const end = '\u001b[J'

/** The screens that were drawn completely. */
function drawn(run: LiveRun): string[][] {
  const frames = run.out().split(home).slice(1)
  return frames
    .filter((frame) => frame.includes(end))
    .map((frame) => plain(frame.slice(0, frame.indexOf(end))).split('\r\n'))
}

test(
  'top shows the worst queues first, in the rows and columns that there are',
  options,
  async (t) => {
    await makeQueues(node)
    const size = { columns: 80, rows: 24 }
    const top = await liveOnTerminal(t, ['top'], { env, size })
    await eventually(() => drawn(top).some((lines) => lines.join().includes('emails')), patience)
    const small = drawn(top).at(-1) as string[]
    t.ok(small.length <= 24 && small.every((line) => line.length <= 80), small.join('\n'))
    t.match(small[0], /^rouse {2}http\S+ {2}1 node {2}5 queues {2}2 in trouble/)
    t.match(small[1], /^in +[\d.]+\/s {2}[▁▂▃▄▅▆▇█ ]+ out +[\d.]+\/s/)
    t.equal(small.at(-1), 'q or Ctrl-C to quit')
    const names = ['orders', 'emails', 'reports', 'invoices', 'thumbnails']
    const places = names.map((name) => small.findIndex((line) => line.startsWith(name)))
    t.same(
      places,
      [...places].sort((a, b) => a - b),
      'held, without consumers, paused, dead, ok',
    )
    t.ok(top.out().includes('\u001b[31m'), 'with colours')

    top.resize({ columns: 200, rows: 50 })
    await eventually(() => drawn(top).at(-1)?.join().includes('IN, LAST 30 s'), patience)
    const large = drawn(top).at(-1) as string[]
    t.ok(large.length <= 50 && large.every((line) => line.length <= 200), large.join('\n'))
    t.match(large.join('\n'), /orders +2 +3 +1 .* held: "card declined" until \d\d:\d\d:\d\d/)

    top.resize({ columns: 80, rows: 10 })
    await eventually(() => drawn(top).at(-1)?.length === 10, patience)
    t.match(drawn(top).at(-1)?.slice(-2), [/more queues/, 'q or Ctrl-C to quit'])
    top.type('q')
    t.equal(await top.exited, 0)
  },
)

for (const [name, key] of [
  ['q', 'q'],
  ['Ctrl-C', '\u0003'],
] as const) {
  test(`top draws, redraws, and restores the screen on ${name}`, options, async (t) => {
    const top = await liveOnTerminal(t, ['top'], { env })
    await eventually(() => drawn(top).length >= 1, patience)
    t.ok(top.out().includes(enter), 'on the alternate screen')
    await node.call('POST', '/api/v1/push', { items: [{ queue: `drawn-${name}`, payload: 1 }] })
    await eventually(() => drawn(top).at(-1)?.join().includes(`drawn-${name}`), patience)
    t.ok(drawn(top).length >= 2)
    t.notOk(top.out().includes(leave))
    top.type(key)
    t.equal(await top.exited, 0)
    t.ok(top.out().includes(leave), 'the previous screen is restored')
    t.ok(top.out().includes('\u001b[?25h'), 'the cursor is visible again')
  })
}

test('NO_COLOR removes the colours', options, async (t) => {
  const top = await liveOnTerminal(t, ['top'], { env: { ...env, NO_COLOR: '1' } })
  await eventually(() => drawn(top).length >= 1, patience)
  top.type('q')
  t.equal(await top.exited, 0)
  t.notMatch(top.out(), /\[\d+m/)
})
