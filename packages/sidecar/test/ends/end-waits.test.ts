// Waiting for the end of messages: which lookups a worker makes, and that every waiter is answered once.
import { ack, type Lease, pop, push } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startSidecar } from '../support/start-sidecar.ts'

let ids = 0

/** A message id of a node: a UUIDv8 becomes the id of its place. */
function newId(): string {
  ids += 1
  return `0198a7c4-9b3f-8c11-8f52-${String(ids).padStart(12, '0')}`
}

async function opened(t: Test) {
  const { sidecar, coordinator, database } = await startSidecar(t, { waitersMax: 4 })
  const { pool } = database
  const add = async (queue: string): Promise<string> => {
    const { items } = await push(pool, [{ queue, partition: 'p', id: newId(), payload: '1' }])
    return items[0]?.messageId as string
  }
  const take = async (queue: string): Promise<Lease> => {
    const demands = [{ batch: 1, partitions: 1, holder: 'test' }]
    const { leases } = await pop(pool, { source: { queue }, group: 'g', demands })
    return leases[0] as Lease
  }
  const wait = (queue: string, id: string, timeoutMs = 60_000, signal = new AbortController()) =>
    sidecar.submit({
      kind: 'END_WAIT',
      queue,
      message: { id, groups: { newestId: 0 } },
      timeoutMs,
      signal: signal.signal,
    })
  const lookups = () => sidecar.stats().queries['rouse.ended_messages'] ?? 0
  return { sidecar, coordinator, pool, add, take, wait, lookups }
}

test('a message that has ended before the request is found by the first lookup', async (t) => {
  const { add, pool, take, wait, lookups } = await opened(t)
  const id = await add('q')
  await ack(pool, [{ leaseId: (await take('q')).leaseId }])
  t.equal(await wait('q', id), 'ended')
  t.equal(lookups(), 1)
})

test('one lookup serves all queues that have a grant, and all their waiters', async (t) => {
  const { add, coordinator, lookups, pool, sidecar, take, wait } = await opened(t)
  const [a, b] = [await add('a'), await add('b')]
  const waiting = [wait('a', a), wait('a', a), wait('b', b)]
  await eventually(() => coordinator.outcomes.length >= 2)
  t.same(sidecar.stats().waitingByQueue, { a: 2, b: 1 })
  for (const queue of ['a', 'b']) await ack(pool, [{ leaseId: (await take(queue)).leaseId }])
  const before = lookups()
  coordinator.notifyMessageAvailable([{ queue: 'a' }, { queue: 'b' }])
  t.same(await Promise.all(waiting), ['ended', 'ended', 'ended'])
  t.equal(lookups() - before, 1)
  t.same(new Set(coordinator.outcomes), new Set(['empty']), 'an end without a hint is no fault')
  t.equal(sidecar.stats().waiting, 0)
})

test('waiters end at their deadline, when their client leaves, and on drain', async (t) => {
  const { add, sidecar, wait } = await opened(t)
  const id = await add('q')
  t.equal(await wait('q', id, 10), 'timeout')
  const gone = new AbortController()
  const left = wait('q', id, 60_000, gone)
  gone.abort()
  t.equal(await left, 'left')
  const waiting = Array.from({ length: 4 }, () => wait('q', id))
  await t.rejects(wait('q', id), { code: 'overloaded' })
  await sidecar.drain()
  t.same(await Promise.all(waiting), Array(4).fill('draining'))
  t.equal(await wait('q', id), 'draining')
  t.equal(sidecar.stats().waiting, 0)
})
