// A lease per message, and extensions that are exact.
import { ack, extend, type Lease, pop, reapExpired, release } from '@rouse/storage'
import { type Test, test } from 'tap'
import { demand, openStorage, payloads, refusal, start } from '../support/storage.ts'

async function opened(t: Test, options: Record<string, unknown> = {}) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', options)
  return storage
}

function leaseIds(leases: readonly Lease[]): Set<string> {
  return new Set(leases.map(({ leaseId }) => leaseId))
}

test('every independent message gets its own lease, which ends alone', async (t) => {
  const { advanceClock, pool, send, take } = await opened(t)
  await send('q', undefined, [1, 2, 3, 4])
  const popped = await take('q', { batch: 3, leasePerMessage: true, leaseMs: 10_000 })
  t.same(payloads(popped), [1, 2, 3])
  t.equal(leaseIds(popped.leases).size, 3)
  for (const { expiresAtMs, queue, attempt } of popped.leases) {
    t.match(
      { expiresAtMs, queue, attempt },
      { expiresAtMs: start + 10_000, queue: 'q', attempt: 1 },
    )
  }
  const [first, second] = popped.leases as [Lease, Lease]
  t.same((await ack(pool, [{ leaseId: first.leaseId }])).rejected, [])
  await release(pool, [second.leaseId])
  t.same(payloads(await take('q', { batch: 3, leasePerMessage: true })), [2])
  t.same(payloads(await take('q', { batch: 3, leasePerMessage: true, autoAck: true })), [4])
  await advanceClock(10_000)
  await reapExpired(pool)
  t.same(payloads(await take('q', { batch: 3, leasePerMessage: true })), [3], 'a redelivery')
})

test('an ordered partition gives one message per pop, and stays closed until it ends', async (t) => {
  const { pool, send, take } = await opened(t)
  await send('q', 'a', [1, 2])
  await send('q', 'b', [3, 4])
  const one = await take('q', { batch: 10, leasePerMessage: true })
  t.same(payloads(one), [1])
  const both = await take('q', { batch: 10, partitions: 5, leasePerMessage: true })
  t.same(payloads(both), [3], 'partition a is leased')
  await ack(pool, [{ leaseId: one.leases[0]?.leaseId as string }])
  t.same(payloads(await take('q', { batch: 10, partitions: 5, leasePerMessage: true })), [2])
})

test('waiters with and without a lease per message share a pop', async (t) => {
  const { pool, send } = await opened(t, { ordering: 'none' })
  await send('q', 'p', [1, 2, 3, 4])
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: [demand({ batch: 2 }), demand({ batch: 2, leasePerMessage: true })],
  })
  t.same(
    leases.map(({ demand: waiter, messages }) => [waiter, messages.length]),
    [
      [0, 2],
      [1, 1],
      [1, 1],
    ],
  )
})

test('an exact extension may shorten a lease of one message, and no other', async (t) => {
  const { advanceClock, pool, send, take } = await opened(t)
  await send('q', undefined, [1, 2, 3])
  const [own] = (await take('q', { leasePerMessage: true, leaseMs: 60_000 })).leases as [Lease]
  const [shared] = (await take('q', { batch: 2, leaseMs: 60_000 })).leases as [Lease]
  const to = ({ leaseId }: Lease, durationMs: number, exact = true) => ({
    leaseId,
    durationMs,
    exact,
  })
  t.same(await extend(pool, [to(own, 5_000, false)]), [start + 60_000])
  t.same(await extend(pool, [to(own, 5_000), to(shared, 61_000, false)]), [
    start + 5_000,
    start + 61_000,
  ])
  t.same(await extend(pool, [to(own, 4_000), to(own, 70_000, false)]), [
    start + 4_000,
    start + 4_000,
  ])
  t.match(await refusal(extend(pool, [to(shared, 5_000)])), {
    state: 'RS400',
    detail: { field: 'exact' },
  })
  t.match(await refusal(extend(pool, [to(own, 0)])), { state: 'RS400' })
  await ack(pool, [
    { leaseId: shared.leaseId, message: { partitionId: shared.partitionId, seq: 2 } },
  ])
  t.same(await extend(pool, [to(shared, 50_000)]), [start + 50_000], 'it holds one message now')
  await advanceClock(4_000)
  t.same(await extend(pool, [to(own, 5_000)]), [null])
})

for (const partition of ['p', undefined]) {
  const kind = partition === undefined ? 'independent' : 'ordered'
  test(`a reaper and an exact extension of an ${kind} lease exclude each other`, async (t) => {
    const { advanceClock, armBarrier, pool, send, take } = await opened(t, { retryLimit: 5 })
    await send('q', partition, [1])
    const held = async () => {
      const { leases } = await take('q', { leasePerMessage: true, leaseMs: 1_000 })
      return { leaseId: leases[0]?.leaseId as string, durationMs: 500, exact: true }
    }
    const reaping = await armBarrier('reap-leases-locked')
    const first = await held()
    await advanceClock(999)
    const early = extend(pool, [first])
    t.same(await early, [start + 1_499])
    await advanceClock(500)
    const reaped = reapExpired(pool)
    await reaping.reached()
    t.same(await extend(pool, [first]), [null], 'the reaper came first')
    await reaping.release()
    t.ok((await reaped).length > 0)

    const second = await held()
    const extending = await armBarrier('extend-written')
    const extended = extend(pool, [{ ...second, durationMs: 3_000 }])
    await extending.reached()
    await advanceClock(1_000)
    t.same(await reapExpired(pool), [], 'the reaper skips what is being extended')
    await extending.release()
    t.same(await extended, [start + 4_499])
    t.same(await reapExpired(pool), [])
    await advanceClock(2_000)
    t.ok((await reapExpired(pool)).length > 0)
  })
}
