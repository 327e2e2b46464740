// How a batch whose handler throws is handled.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { deadLetters } from '../support/dead-letters.ts'
import { gate } from '../support/gate.ts'

const cluster = await sharedCluster()
const { urls } = cluster

test('only the message of a failed batch that fails alone is charged', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.configure({ retryLimit: 1, retryBackoffMs: [0] })
  await queue.pushMany(
    ['a', 'b'].flatMap((partition) =>
      [1, 2].map((n) => ({ payload: `${partition}${n}`, partition })),
    ),
  )
  const calls: string[][] = []
  const errors: unknown[] = []
  const worker = queue.workBatch(
    { batch: 4, onError: (_error, about) => errors.push([about.kind, about.message?.data]) },
    (messages) => {
      calls.push(messages.map(({ data, attempt }) => `${data}.${attempt}`))
      if (messages.some(({ data }) => data === 'a1')) throw new Error('a1 is bad')
    },
  )
  await eventually(async () => (await deadLetters(cluster, name)).length > 0)
  await eventually(() =>
    calls.some(
      (messages) =>
        messages.some((call) => call.startsWith('a2.')) &&
        !messages.some((call) => call.startsWith('a1.')),
    ),
  )
  await worker.stop()
  t.match(await deadLetters(cluster, name), [{ payload: '"a1"', error_message: 'a1 is bad' }])
  t.same(
    calls
      .filter((messages) => messages.length > 1)
      .flat()
      .filter((call) => !call.endsWith('.1')),
    [],
    'only the bad one is charged',
  )
  t.ok(
    calls.flat().every((call) => call.startsWith('a1.') || call.endsWith('.1')),
    calls.join(' | '),
  )
  t.ok(
    errors.every((error) => ['a1', undefined].includes((error as string[])[1])),
    'no other message is blamed',
  )
  t.same(await queue.pop({ batch: 10, partitions: 10 }), [], 'the others are completed')
})

test('messages of a failed batch keep their order, and the failed one holds back those behind it', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [300] })
  await queue.pushMany([1, 2, 3, 4].map((payload) => ({ payload, partition: 'p' })))
  const calls: string[] = []
  const done: unknown[] = []
  const worker = queue.workBatch({ batch: 4 }, (messages) => {
    calls.push(messages.map(({ data, attempt }) => `${data}.${attempt}`).join())
    if (messages.some(({ data, attempt }) => data === 2 && attempt === 1)) throw new Error('once')
    done.push(...messages.map(({ data }) => data))
  })
  await eventually(() => done.length === 4)
  await worker.stop()
  t.same(calls.slice(0, 3), ['1.1,2.1,3.1,4.1', '1.1', '2.1'])
  t.same(done, [1, 2, 3, 4])
  t.ok(
    calls.every((call) => !/[134]\.2/.test(call)),
    calls.join(' | '),
  )
})

test('decisions of a batch handler before it throws stay valid', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.configure({ ordering: 'none' })
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload })))
  const calls: string[] = []
  const worker = queue.workBatch({ batch: 3 }, async (messages, context) => {
    calls.push(messages.map(({ data }) => data).join())
    if (messages.length === 1) return
    await context.ack({ messages: messages.slice(0, 1) })
    throw new Error('half-way')
  })
  await eventually(() => calls.length === 3)
  await worker.stop()
  t.same(calls, ['1,2,3', '2', '3'])
  t.same(await queue.pop({ batch: 10 }), [])
})

test('a stop releases the rest of a failed batch without charging it', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload })))
  const first = gate()
  const go = gate()
  const calls: string[] = []
  const worker = queue.workBatch({ batch: 3 }, async (messages) => {
    calls.push(messages.map(({ data }) => data).join())
    if (messages.length > 1) throw new Error('together')
    first.open()
    await go.opened
  })
  await first.opened
  const stopped = worker.stop()
  go.open()
  await stopped
  t.same(calls, ['1,2,3', '1'])
  t.match(await queue.pop({ batch: 10, wait: '5s' }), [
    { data: 2, attempt: 1 },
    { data: 3, attempt: 1 },
  ])
})
