// Acknowledging inside the handler's transaction.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Message } from '../../src/index.ts'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { deadLetters } from '../support/dead-letters.ts'

const cluster = await sharedCluster()
const { urls, database } = cluster

test('ackIn acknowledges in the transaction of the handler, and the worker sends no other ack', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload, partition: 'p' })))
  const errors: unknown[] = []
  const seen: unknown[] = []
  const worker = queue.work(
    { onError: (error, about) => errors.push([about.kind, String(error)]) },
    async ({ data }, context) => {
      await inTransaction('commit', (client) => context.ackIn(client))
      seen.push(data)
    },
  )
  await eventually(() => seen.length === 3)
  await worker.stop()
  t.same(seen, [1, 2, 3])
  t.same(errors, [])
  t.same(await queue.pop({ batch: 10 }), [])
})

test('a message whose ackIn is rolled back is charged and redelivered before those behind it', async (t) => {
  for (const outcome of ['throws', 'returns'] as const) {
    const queue = clientOf(t, urls).queue(unique())
    await queue.configure({ retryBackoffMs: [0] })
    await queue.pushMany([1, 2].map((payload) => ({ payload, partition: 'p' })))
    const seen: string[] = []
    const errors: unknown[] = []
    const worker = queue.work(
      { onError: (error, about) => errors.push([about.kind, (error as { code?: string }).code]) },
      async ({ data, attempt }, context) => {
        seen.push(`${data}.${attempt}`)
        const isFirst = seen.length === 1
        await inTransaction(isFirst ? 'rollback' : 'commit', (client) => context.ackIn(client))
        if (isFirst && outcome === 'throws') throw Object.assign(new Error('no'), { code: 'NO' })
      },
    )
    await eventually(() => seen.length >= 3)
    await worker.stop()
    t.same(seen, ['1.1', '1.2', '2.1'], outcome)
    t.same(errors, [outcome === 'throws' ? ['handler', 'NO'] : ['ack', 'ack_in_rolled_back']])
    t.same(await queue.pop({ batch: 10 }), [])
  }
})

test('an error after a committed ackIn is reported, and the message stays acknowledged', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.push(1)
  const errors: unknown[] = []
  const worker = queue.work(
    { onError: (error, about) => errors.push([about.kind, String(error)]) },
    async (_message, context) => {
      await inTransaction('commit', (client) => context.ackIn(client))
      throw new Error('too late')
    },
  )
  await eventually(() => errors.length > 0)
  await worker.stop()
  t.same(errors, [['handler', 'Error: too late']])
  t.same(await queue.pop({ batch: 10 }), [])
})

test('a lease that ends with its ackIn is not reported as lost, however long the handler runs', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.push(1)
  const errors: unknown[] = []
  let aborted: boolean | undefined
  const worker = queue.work(
    { lease: '1s', onError: (error) => errors.push(error) },
    async (_message, context) => {
      await inTransaction('commit', (client) => context.ackIn(client))
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      aborted = context.signal.aborted
    },
  )
  await eventually(() => aborted !== undefined)
  await worker.stop()
  t.equal(aborted, false)
  t.same(errors, [])
})

test('a batch is acknowledged in one transaction, wholly or partly', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.pushMany([1, 2, 3].map((payload) => ({ payload })))
  const errors: unknown[] = []
  let calls = 0
  const worker = queue.workBatch(
    { batch: 3, onError: (error) => errors.push(error) },
    async (messages, context) => {
      const [first, ...rest] = messages
      await inTransaction('commit', (client) => context.ackIn(client, { messages: rest }))
      await context.deadLetter('first', { messages: [first as Message] })
      calls += 1
    },
  )
  await eventually(() => calls === 1)
  await worker.stop()
  t.same(errors, [])
  t.match(await deadLetters(cluster, name), [{ payload: '1', error_message: 'first' }])
  t.same(await queue.pop({ batch: 10 }), [])
})

test('a failed batch is handled one message at a time if its ackIn was rolled back, not if it was committed', async (t) => {
  for (const end of ['rollback', 'commit'] as const) {
    const name = unique()
    const queue = clientOf(t, urls).queue(name)
    await queue.configure({ ordering: 'none', retryLimit: 0 })
    // Use separate partitions: while ackIn is open, other acks of its lease and partition are refused.
    await queue.pushMany([1, 2, 3].map((n) => ({ payload: n, partition: `p${n}` })))
    const calls: string[] = []
    const errors: unknown[] = []
    const worker = queue.workBatch(
      { batch: 3, onError: (error, about) => errors.push([about.kind, String(error)]) },
      async (messages, context) => {
        calls.push(messages.map(({ data }) => data).join())
        const isBad = messages.some(({ data }) => data === 2)
        const outcome = messages.length > 1 ? end : isBad ? 'rollback' : 'commit'
        await inTransaction(outcome, (client) => context.ackIn(client))
        if (isBad) throw new Error('2 is bad')
      },
    )
    await eventually(() => errors.length === (end === 'rollback' ? 2 : 1))
    if (end === 'rollback') await eventually(() => calls.length === 4)
    await worker.stop()
    t.same(calls, end === 'rollback' ? ['1,2,3', '1', '2', '3'] : ['1,2,3'])
    t.same(new Set(errors.map(String)), new Set(['handler,Error: 2 is bad']))
    t.match(await deadLetters(cluster, name), end === 'rollback' ? [{ payload: '2' }] : [])
    t.same(await queue.pop({ batch: 10, partitions: 10 }), [])
  }
})

test('a direct call of rouse.ack_in by a handler is not reported as a lost lease', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany(Array.from({ length: 20 }, (_, payload) => ({ payload })))
  const errors: unknown[] = []
  const seen: unknown[] = []
  const worker = queue.work({ onError: (error) => errors.push(error) }, async (message) => {
    await inTransaction('commit', (client) =>
      client.query('select rouse.ack_in($1)', [message.receipt]),
    )
    seen.push(message.data)
  })
  await eventually(() => seen.length === 20)
  await worker.stop()
  t.same(errors, [])
})

test('a late acknowledgement is reported as a lost lease', async (t) => {
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.push(1)
  const errors: unknown[] = []
  const worker = queue.work({ onError: (error) => errors.push(error) }, async () => {
    await fetch(`${urls[0]}/api/v1/consumer-groups/__QUEUE_MODE__/queues/${name}`, {
      method: 'DELETE',
    })
  })
  await eventually(() => errors.length > 0)
  await worker.stop()
  t.match(errors, [{ code: 'lease_lost' }])
})

async function inTransaction(
  end: 'commit' | 'rollback',
  work: (client: { query(text: string, values?: unknown[]): Promise<unknown> }) => Promise<unknown>,
): Promise<void> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    await work(client)
    await client.query(end)
  } finally {
    client.release()
  }
}
