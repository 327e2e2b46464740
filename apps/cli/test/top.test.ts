// The live screen, on a terminal with keyboard input.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { sharedNode } from './support/node.ts'
import { liveOnTerminal, plain, terminalMissing } from './support/rouse.ts'

const node = await sharedNode()
const env = { ROUSE_URL: node.url }
const patience = { timeoutMs: 60_000 }
const options = { timeout: 120_000, skip: await terminalMissing() }

const enter = '\u001b[?1049h'
const leave = '\u001b[?1049l'
const home = '\u001b[H\u001b[J'
const draws = (text: string) => text.split(home).length - 1

for (const [name, key] of [
  ['q', 'q'],
  ['Ctrl-C', '\u0003'],
] as const) {
  test(`top draws, redraws, and restores the screen on ${name}`, options, async (t) => {
    const top = liveOnTerminal(t, ['top'], { env })
    await eventually(() => draws(top.out()) >= 1 && top.out().includes('to quit'), patience)
    t.ok(top.out().includes(enter), 'on the alternate screen')
    await node.call('POST', '/api/v1/push', { items: [{ queue: `drawn-${name}`, payload: 1 }] })
    await eventually(() => plain(top.out()).includes(`drawn-${name}`), patience)
    t.ok(draws(top.out()) >= 2)
    t.notOk(top.out().includes(leave))
    top.type(key)
    t.equal(await top.exited, 0)
    t.ok(top.out().includes(leave), 'the previous screen is restored')
    t.ok(top.out().includes('\u001b[?25h'), 'the cursor is visible again')
  })
}
