import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Message, Rouse } from '../../src/index.ts'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { deadLetters } from '../support/dead-letters.ts'
import { gate } from '../support/gate.ts'

const cluster = await sharedCluster()
const { urls } = cluster

test('a handler that returns acknowledges its message', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload })))
  const seen: unknown[] = []
  const worker = queue.work(({ data }) => void seen.push(data))
  await eventually(() => seen.length === 3)
  await worker.stop()
  t.same(seen, [1, 2, 3])
  t.same(await queue.pop(), [], 'nothing is left')
})

test('a message whose handler throws is retried with backoff, then dead-lettered with its error', async (t) => {
  const rouse = clientOf(t, urls)
  const name = unique()
  const queue = rouse.queue(name)
  await queue.configure({ retryLimit: 2, retryBackoffMs: [0] })
  await queue.push('poison')
  const attempts: number[] = []
  const errors: unknown[] = []
  const worker = queue.work(
    { onError: (error, about) => errors.push([String(error), about.kind]) },
    ({ attempt }) => {
      attempts.push(attempt)
      throw Object.assign(new Error('no such mailbox'), { code: 'EMAILBOX' })
    },
  )
  const dead = await eventually(async () => (await deadLetters(cluster, name))[0])
  t.match(dead, {
    payload: '"poison"',
    error_message: 'no such mailbox',
    error_code: 'EMAILBOX',
  })
  t.same(attempts, [1, 2, 3])
  t.same(errors[0], ['Error: no such mailbox', 'handler'])
  await worker.stop()
})

test('context.retry redelivers after its delay without charging, and context.deadLetter ends the message', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.push('later')
  const times: number[] = []
  const attempts: number[] = []
  const worker = queue.work(async ({ attempt }, context) => {
    times.push(performance.now())
    attempts.push(attempt)
    if (times.length === 1) return await context.retry({ delay: '500ms' })
    await context.deadLetter('hard bounce')
  })
  await eventually(() => times.length === 2)
  t.ok((times[1] as number) - (times[0] as number) >= 495)
  t.same(attempts, [1, 1])
  await worker.stop()
  t.match(await deadLetters(cluster, name), [{ error_message: 'hard bounce' }])
})

test('an ack with a push is one transaction and passes on the trace', async (t) => {
  const rouse = clientOf<Record<string, unknown>>(t, urls)
  const [source, target] = [unique('orders'), unique('receipts')]
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await rouse.queue(source).push(1, { traceparent })
  await rouse.queue(source).push(2)
  const seen: unknown[] = []
  const refused: unknown[] = []
  const worker = rouse.queue(source).work(async ({ data }, context) => {
    if (data === 2) {
      const bad = { queue: target, payload: 'never', partition: '\u0000' }
      await context.ack({ push: [{ queue: target, payload: 'not this' }, bad] }).catch((error) => {
        refused.push(error.code)
      })
      await context.deadLetter()
    } else await context.ack({ push: [{ queue: target, payload: { of: data } }] })
    seen.push(data)
  })
  await eventually(() => seen.length === 2)
  await worker.stop()
  t.same(refused, ['invalid_name'])
  t.match(await rouse.queue(target).pop({ batch: 10 }), [
    { data: { of: 1 }, headers: { traceparent } },
  ])
  t.equal(
    (await rouse.queue(target).pop({ batch: 10, wait: 0 })).length,
    0,
    'nothing of the second',
  )
  t.same(await rouse.queue(source).pop({ batch: 10 }), [])
})

test('one partition is handled in order, several partitions concurrently', async (t) => {
  const queue = clientOf<Record<string, number>>(t, urls).queue(unique())
  await queue.pushMany(
    Array.from({ length: 200 }, (_, i) => ({ payload: i, partition: `p${i % 10}` })),
  )
  const running = new Map<string | null, number>()
  const seen: Message<number>[] = []
  let most = 0
  let overlaps = 0
  const worker = queue.work({ concurrency: 8 }, async (message) => {
    const others = running.get(message.partition) ?? 0
    if (others > 0) overlaps += 1
    running.set(message.partition, others + 1)
    most = Math.max(
      most,
      [...running.values()].reduce((a, b) => a + b),
    )
    await new Promise((resolve) => setTimeout(resolve, 1))
    running.set(message.partition, others)
    seen.push(message)
  })
  await eventually(() => seen.length === 200, { timeoutMs: 20_000 })
  await worker.stop()
  t.equal(overlaps, 0)
  t.ok(most > 1 && most <= 8, `${most} at once`)
  for (let p = 0; p < 10; p += 1) {
    const data = seen.filter(({ partition }) => partition === `p${p}`).map((m) => m.data)
    t.same(
      data,
      [...data].sort((a, b) => a - b),
      `p${p} in order`,
    )
  }
})

test('a message that fails holds back those behind it', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [300] })
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload, partition: 'p' })))
  const seen: string[] = []
  const worker = queue.work({ concurrency: 5 }, ({ data, attempt }) => {
    seen.push(`${data}.${attempt}`)
    if (data === 1 && attempt === 1) throw new Error('once')
  })
  await eventually(() => seen.length >= 4)
  await worker.stop()
  t.same(seen, ['1.1', '1.2', '2.1', '3.1'])
})

test('without ordering, messages of one partition are handled concurrently', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ ordering: 'none' })
  await queue.pushMany(Array.from({ length: 5 }, (_, payload) => ({ payload })))
  const all = gate()
  let running = 0
  const worker = queue.work({ concurrency: 5 }, async () => {
    running += 1
    if (running === 5) all.open()
    await all.opened
  })
  await all.opened
  await worker.stop()
  t.equal(running, 5)
})

test('a batch handler ends each message separately', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.configure({ retryBackoffMs: [0], onFailure: 'skip' })
  await queue.pushMany(Array.from({ length: 10 }, (_, payload) => ({ payload })))
  const calls: unknown[][] = []
  const worker = queue.workBatch({ batch: 6 }, async (messages, context) => {
    calls.push(messages.map(({ data, attempt }) => `${data}.${attempt}`))
    const bad = messages.filter(({ data }) => data === 3)
    const again = messages.filter(
      ({ data, attempt }) => data === 4 && attempt === 1 && calls.length === 1,
    )
    await context.deadLetter('three', { messages: bad })
    await context.retry({ messages: again })
  })
  await eventually(() => calls.flat().length === 11)
  await worker.stop()
  t.same(calls[0], ['0.1', '1.1', '2.1', '3.1', '4.1', '5.1'])
  t.same(calls.flat().filter((call) => call === '4.1').length, 2)
  t.match(await deadLetters(cluster, name), [{ payload: '3', error_message: 'three' }])
  t.same(await queue.pop({ batch: 10 }), [])
})

test('a lease is renewed while its handler runs and while its messages wait', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2].map((payload) => ({ payload })))
  const seen: string[] = []
  const errors: unknown[] = []
  const worker = queue.work(
    { lease: '1s', onError: (error) => errors.push(error) },
    async ({ data, attempt }, { signal }) => {
      await new Promise((resolve) => setTimeout(resolve, 2_500))
      seen.push(`${data}.${attempt}${signal.aborted ? ' aborted' : ''}`)
    },
  )
  await eventually(() => seen.length === 2, { timeoutMs: 15_000 })
  await worker.stop()
  t.same(seen, ['1.1', '2.1'])
  t.same(errors, [])
  t.same(await queue.pop(), [])
})

test('the signal aborts when the lease is lost, and the handler can no longer acknowledge', async (t) => {
  const { queue, deleteGroup } = groupToLose(clientOf(t, urls))
  await queue.push('mine')
  const codes: unknown[] = []
  const worker = queue.group('g').work({ lease: '1s', from: 'all' }, async (_message, context) => {
    await deleteGroup()
    await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()))
    codes.push(context.signal.reason.code)
    await context.ack().catch((error) => codes.push(error.code))
  })
  // The group is created again by the worker's next pop, so the message may come again.
  await eventually(() => codes.length >= 2)
  t.same(codes.slice(0, 2), ['lease_lost', 'lease_lost'])
  await worker.stop()
})

function groupToLose(rouse: Rouse) {
  const name = unique()
  const deleteGroup = async (): Promise<void> => {
    const path = `/api/v1/consumer-groups/g/queues/${name}`
    await fetch(`${urls[0]}${path}`, { method: 'DELETE' })
  }
  return { queue: rouse.queue(name), deleteGroup }
}
