// Verbs that delete something name the server and ask; the question is answered on a real terminal.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { sharedNode, unique } from './support/node.ts'
import { liveOnTerminal, plain, rouse, terminalMissing } from './support/rouse.ts'

const node = await sharedNode()
const env = { ROUSE_URL: node.url }
const timeout = 120_000
const skip = await terminalMissing()
const patience = { timeoutMs: 60_000 }

async function filledQueue(): Promise<string> {
  const queue = unique('asked')
  const items = [1, 2].map((payload) => ({ queue, payload }))
  await node.call('POST', '/api/v1/push', { items })
  return queue
}

const readyOf = async (queue: string) => (await node.call('GET', `/api/v1/queues/${queue}`)).ready

test('a question names what is deleted and the server, and only yes is a yes', {
  timeout,
  skip,
}, async (t) => {
  const queue = await filledQueue()
  for (const [keys, code] of [
    ['\r', 1],
    ['n\r', 1],
    ['yess\r', 1],
    ['\u0003', 1],
    ['\u0004', 1],
  ] as const) {
    const run = await asked(t, ['queues', 'purge', queue])
    t.ok(run.out().includes(`Delete 2 messages of queue "${queue}" on ${node.url}? [y/N]`))
    run.type(keys)
    t.equal(await run.exited, code, JSON.stringify(keys))
    t.match(plain(run.out()), /nothing was changed/)
    t.equal(await readyOf(queue), 2)
  }
  const run = await asked(t, ['queues', 'purge', queue])
  run.type('y\r')
  t.equal(await run.exited, 0)
  t.equal(await readyOf(queue), 0)
})

async function asked(t: Test, args: readonly string[]) {
  const run = await liveOnTerminal(t, args, { env })
  await eventually(() => run.out().includes('[y/N]'), patience)
  return run
}

test('without a terminal nothing is deleted, unless --yes says so', { timeout }, async (t) => {
  const queue = await filledQueue()
  await node.call('GET', `/api/v1/pop/queue/${queue}?consumerGroup=g`)
  await node.call('PUT', '/api/v1/schedules/s', { queue, cron: '0 3 1 1 *' })
  for (const args of [
    ['queues', 'purge', queue],
    ['queues', 'rm', queue],
    ['groups', 'rm', queue, 'g'],
    ['groups', 'seek', queue, 'g', '--to', 'end'],
    ['messages', 'cancel', '--queue', queue, '--state', 'ready'],
    ['dlq', 'purge', queue],
    ['schedules', 'rm', 's'],
    ['keys', 'revoke', 'k'],
  ]) {
    const { code, out, err } = await rouse(args, { env, input: 'y\n' })
    t.same({ code, out }, { code: 1, out: '' }, args.join(' '))
    t.match(err, /^rouse: this would .* on http:\S+; add --yes to do it\n$/)
    t.ok(err.includes(node.url))
  }
  t.equal(await readyOf(queue), 1)
  const moved = await rouse(['groups', 'seek', queue, 'g', '--to', 'end', '--yes'], { env })
  t.match(moved, { code: 0, out: /"success":true/ })
  t.equal(await readyOf(queue), 0)
  t.equal((await rouse(['groups', 'rm', queue, 'g', '--yes'], { env })).code, 0)
  t.same((await node.call('GET', `/api/v1/resources/queues/${queue}`)).groups, [])
})

test('a new consumer group begins at new messages, and a misspelt one is noticed', {
  timeout,
}, async (t) => {
  const queue = await filledQueue()
  await node.call('GET', `/api/v1/pop/queue/${queue}?consumerGroup=mailer`)
  const misspelt = await rouse(['pop', queue, '-g', 'mialer'], { env })
  t.match(misspelt, { code: 4, out: '{"messages":[]}\n' })
  t.match(misspelt.err, /has no consumer group "mialer" yet: .* did you mean "mailer"\?\n$/)
  await node.call('POST', '/api/v1/push', { items: [{ queue, payload: 'new' }] })
  const again = await rouse(['pop', queue, '-g', 'mialer', '-n', '9'], { env })
  t.match(JSON.parse(again.out).messages, [{ data: 'new' }])
  t.equal(again.err, '', 'it exists now')
  const all = await rouse(['pop', queue, '-g', 'other', '--from', 'all', '-n', '9'], { env })
  t.equal(JSON.parse(all.out).messages.length, 3)
  t.match(all.err, /begins with all messages that are kept\n$/)
})
