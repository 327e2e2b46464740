// Other ways to consume: groups, iteration, manual calls, one partition.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Message } from '../../src/index.ts'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'

const { urls, database } = await sharedCluster()

/** Resolves to `value` after a while: a generous limit for operations that, with an old bug, never ended. */
function pauseMs<Value>(ms: number, value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(resolve, ms, value).unref())
}

test('each of two groups gets every message', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload })))
  const seen: Record<string, unknown[]> = { audit: [], mail: [] }
  const workers = Object.keys(seen).map((name) =>
    queue.group(name).work({ from: 'all' }, ({ data }) => void seen[name]?.push(data)),
  )
  await eventually(() => Object.values(seen).every(({ length }) => length === 3))
  await Promise.all(workers.map((worker) => worker.stop()))
  t.same(seen, { audit: [1, 2, 3], mail: [1, 2, 3] })
})

test('iteration acknowledges each message; leaving the loop fails a message that was not ended', async (t) => {
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

test('a loop that throws charges each attempt until the message is dead-lettered', async (t) => {
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

test('a message ended before its loop is left stays ended', async (t) => {
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

test('a loop that waits for a message ends when its client closes', async (t) => {
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
  t.same(await clientOf(t, urls).queue(queue.name).pop(), [], 'its message is acknowledged')
})

test('closing waits for the message in the loop and releases those behind it', async (t) => {
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

test('pop, extend, fail, retry, release and ack work without a worker', async (t) => {
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

test('a worker of one partition sees no other, and a new group may start with new messages', async (t) => {
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
