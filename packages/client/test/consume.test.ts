// Consuming in other ways than by one worker: groups, iteration, by hand, one partition.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Message } from '../src/index.ts'
import { clientOf, sharedCluster, unique } from './support/cluster.ts'

const { urls } = await sharedCluster()

test('two groups each get every message', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload })))
  const seen: Record<string, unknown[]> = { audit: [], mail: [] }
  const workers = Object.keys(seen).map((name) =>
    queue.group(name).work(({ data }) => void seen[name]?.push(data)),
  )
  await eventually(() => Object.values(seen).every(({ length }) => length === 3))
  await Promise.all(workers.map((worker) => worker.stop()))
  t.same(seen, { audit: [1, 2, 3], mail: [1, 2, 3] })
})

test('iteration acknowledges as it goes on, and gives back what it leaves', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2, 3, 4].map((payload) => ({ payload })))
  const seen: unknown[] = []
  for await (const message of queue.messages()) {
    seen.push(message.data)
    if (message.data === 3) break
  }
  t.same(seen, [1, 2, 3])
  const rest = await queue.pop({ batch: 10, wait: '5s' })
  t.match(rest, [{ data: 3, attempt: 1 }], 'not charged')
})

test('by hand: pop, extend, fail, retry, release, ack', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [0] })
  await queue.push('x')
  const pop = async () => (await queue.pop({ wait: '5s' }))[0] as Message
  const first = await pop()
  await queue.extend(first, '1m')
  await queue.fail(first, new Error('no'))
  await t.rejects(queue.ack(first), { code: 'lease_lost', status: 409 })
  const second = await pop()
  t.equal(second.attempt, 2)
  await queue.retry(second)
  const third = await pop()
  t.equal(third.attempt, 2)
  await queue.release(third)
  const fourth = await pop()
  t.equal(fourth.attempt, 2)
  await queue.ack(fourth, { push: [{ queue: queue.name, payload: 'y' }] })
  t.equal((await pop()).data, 'y')
})

test('a worker of one partition sees no other; a new group may begin with what comes', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.push('old', { partition: 'a' })
  const seen: unknown[] = []
  const worker = queue
    .group('late')
    .work({ partition: 'a', from: 'new' }, ({ data }) => void seen.push(data))
  await eventually(async () => {
    await queue.push('b', { partition: 'b' })
    await queue.push('new', { partition: 'a' })
    return seen.length > 0
  })
  await worker.stop()
  t.ok(seen.every((data) => data === 'new'))
})
