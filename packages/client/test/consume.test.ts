// Consuming in other ways than by one worker: groups, iteration, by hand, one partition.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Message } from '../src/index.ts'
import { clientOf, sharedCluster, unique } from './support/cluster.ts'

const { urls, database } = await sharedCluster()

/** A limit for what should end long before, in tests of things that once never did. */
function pauseMs<Value>(ms: number, value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(resolve, ms, value).unref())
}

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

test('iteration acknowledges as it goes on; leaving the loop fails the message that was not ended', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [0] })
  await queue.pushMany([1, 2, 3, 4].map((payload) => ({ payload })))
  const seen: unknown[] = []
  for await (const message of queue.messages()) {
    seen.push(message.data)
    if (message.data === 3) break
  }
  t.same(seen, [1, 2, 3])
  const rest = await queue.pop({ batch: 10, wait: '5s' })
  t.match(rest, [{ data: 3, attempt: 2 }], 'charged')
})

test('a loop that throws charges each attempt, up to a dead letter', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.configure({ retryLimit: 2, retryBackoffMs: [0] })
  await queue.push('poison')
  const attempts: number[] = []
  for (let run = 0; run < 3; run += 1) {
    await t.rejects(
      async () => {
        for await (const { attempt } of queue.messages()) {
          attempts.push(attempt)
          throw new Error('cannot')
        }
      },
      { message: 'cannot' },
    )
  }
  t.same(attempts, [1, 2, 3])
  const { rows } = await database.pool.query(
    `select d.payload, d.error_code from rouse.dead_letters d join rouse.queues q on q.id = d.queue_id
     where q.name = $1`,
    [name],
  )
  t.same(rows, [{ payload: '"poison"', error_code: 'loop_left' }])
})

test('a message that was ended before its loop is left stays ended', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [0] })
  const errors: unknown[] = []
  for (const end of ['ack', 'retry', 'ack without waiting'] as const) {
    await queue.push(end)
    for await (const message of queue.messages({ onError: (error) => errors.push(error) })) {
      if (end === 'ack') await message.ack()
      else if (end === 'retry') await message.retry()
      else void message.ack()
      break
    }
    const left = await queue.pop({ wait: end === 'retry' ? '5s' : 0 })
    t.match(left, end === 'retry' ? [{ data: 'retry', attempt: 1 }] : [], end)
    for (const message of left) await queue.ack(message)
  }
  t.same(errors, [])
})

test('a loop that waits for a message ends when its client is closed', async (t) => {
  const rouse = clientOf(t, urls)
  const queue = rouse.queue(unique())
  await queue.push(1)
  const seen: unknown[] = []
  const loop = (async () => {
    for await (const { data } of queue.messages()) seen.push(data)
    return 'ended'
  })()
  await eventually(() => seen.length === 1)
  await rouse.close()
  t.equal(await Promise.race([loop, pauseMs(5_000, 'still waits')]), 'ended')
  t.same(await clientOf(t, urls).queue(queue.name).pop(), [], 'and its message is acknowledged')
})

test('closing waits for the message that a loop is at, and gives back those behind it', async (t) => {
  const rouse = clientOf(t, urls)
  const queue = rouse.queue(unique())
  await queue.pushMany([1, 2].map((payload) => ({ payload })))
  const seen: unknown[] = []
  let closed: Promise<void> | undefined
  for await (const { data } of queue.messages()) {
    seen.push(data)
    closed ??= rouse.close()
  }
  await closed
  t.same(seen, [1])
  const rest = await clientOf(t, urls).queue(queue.name).pop({ batch: 10, wait: '5s' })
  t.match(rest, [{ data: 2, attempt: 1 }])
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
