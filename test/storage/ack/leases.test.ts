// Rule 8 of docs/storage.md: a lease belongs to one waiter, and a call with the id of an ended lease changes
// nothing.
import {
  ack,
  ackIn,
  deleteGroup,
  extend,
  type Lease,
  purge,
  reapExpired,
  release,
  seek,
  transaction,
} from '@rouse/storage'
import { test } from 'tap'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'
import { dumpTables } from '../support/table-dump.ts'

const endings: Record<string, (storage: Storage, lease: Lease) => Promise<unknown>> = {
  'it expired': ({ advanceClock }) => advanceClock(10_000),
  'it expired and was reaped': async ({ advanceClock, pool }) => {
    await advanceClock(10_000)
    await reapExpired(pool)
  },
  'it was taken over by another consumer': async ({ advanceClock, lease, pool }) => {
    await advanceClock(10_000)
    await reapExpired(pool)
    await lease('q')
  },
  'it was released': ({ pool }, { leaseId }) => release(pool, [leaseId]),
  'its group was moved': ({ pool }) => seek(pool, { queue: 'q', group: 'g', to: new Date(0) }),
  'its queue was purged': ({ pool }) => purge(pool, 'q'),
  'its group was deleted': ({ pool }) => deleteGroup(pool, 'q', 'g'),
  'all it held was acknowledged': ({ pool }, lease) => finish(pool, lease),
}

for (const ordering of ['partition', 'none']) {
  for (const [what, end] of Object.entries(endings)) {
    test(`a lease with ordering ${ordering} is refused everywhere after ${what}`, async (t) => {
      const storage = await openStorage(t)
      const { freezeClock, lease, pool, send, set } = storage
      await freezeClock(start)
      await set('q', { ordering })
      await send('q', 'p', [1, 2])
      const stale = await lease('q', { batch: 2, leaseMs: 10_000 })
      await end(storage, stale)
      const before = await dumpTables(pool)
      t.same((await finish(pool, stale)).rejected, [0])
      t.same((await ack(pool, [item(stale), item(stale, 1, 'failed')])).rejected, [0, 1])
      t.same((await ack(pool, [item(stale, 0, 'dlq'), item(stale, 1, 'retry')])).rejected, [0, 1])
      t.same(await extend(pool, [{ leaseId: stale.leaseId, durationMs: 1_000_000 }]), [null])
      t.equal((await release(pool, [stale.leaseId])).released.size, 0)
      t.match(await refusal(ackIn(pool, stale.leaseId)), { state: 'RS409' })
      const pushes = [message('q', 'p', 'no'), message('q', 'new', 'no')]
      t.match(await refusal(transaction(pool, { acks: [item(stale)], pushes })), { state: 'RS409' })
      t.same(await dumpTables(pool), before, 'nothing changed')
    })
  }
}

test('an ack of a message that its lease does not hold is rejected alone', async (t) => {
  const { lease, pool, send } = await openStorage(t)
  await send('q', 'p', [1, 2, 3])
  await send('q', 'other', [1])
  const held = await lease('q', { partition: 'p', batch: 2 })
  const other = await lease('q', { partition: 'other' })
  const at = (partitionId: string, seq: number) => ({
    ...item(held),
    message: { partitionId, seq },
  })
  const { rejected } = await ack(pool, [
    at(held.partitionId, 3),
    at(held.partitionId, 0),
    at(held.partitionId, 1),
    at(other.partitionId, 1),
    at(held.partitionId, 1),
    at(held.partitionId, -1),
    at(held.partitionId, 2 ** 40),
  ])
  t.same(rejected, [0, 1, 3, 4, 5, 6], 'only the one it holds, and that once')
})

test('a lease of a group other than the named one is rejected', async (t) => {
  const { lease, pool, send } = await openStorage(t)
  await send('q', 'p', [1])
  const held = await lease('q', { group: 'mine' })
  t.same((await ack(pool, [item(held)], 'yours')).rejected, [0])
  t.same((await ack(pool, [{ leaseId: held.leaseId }], 'yours')).rejected, [0])
  t.same((await ack(pool, [item(held)], 'mine')).rejected, [])
})

test('an extend never shortens a lease', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', [1])
  const { expiresAtMs, leaseId } = await lease('q', { leaseMs: 60_000 })
  t.equal(expiresAtMs, start + 60_000)
  t.same(await extend(pool, [{ leaseId, durationMs: 1_000 }]), [start + 60_000])
  t.same(await extend(pool, [{ leaseId, durationMs: 90_000 }]), [start + 90_000])
  await advanceClock(89_999)
  t.same(await reapExpired(pool), [])
  t.same(await extend(pool, [{ leaseId, durationMs: 10 }]), [start + 90_009])
})

test('an extend covers every lane of its pop', async (t) => {
  const { advanceClock, freezeClock, pool, send, take } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'a', [1])
  await send('q', 'b', [1])
  const { leases } = await take('q', { batch: 2, partitions: 2, leaseMs: 1_000 })
  t.equal(new Set(leases.map(({ leaseId }) => leaseId)).size, 1)
  await extend(pool, [{ leaseId: leases[0]?.leaseId as string, durationMs: 9_000 }])
  await advanceClock(8_000)
  t.same(await reapExpired(pool), [])
  t.same(
    (
      await ack(
        pool,
        leases.map((held) => item(held)),
      )
    ).rejected,
    [],
  )
})

test('a lease expires by the clock of the database, to the millisecond', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2, leaseMs: 1_000 })
  await advanceClock(999)
  t.same((await ack(pool, [item(held)])).rejected, [])
  await advanceClock(1)
  t.same((await ack(pool, [item(held, 1)])).rejected, [0])
})

test('a released lease returns its messages at once, in order and uncharged', async (t) => {
  const { lease, pool, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2, 3, 4])
  const held = await lease('q', { batch: 3 })
  await ack(pool, [item(held, 1)])
  const { woken } = await release(pool, [held.leaseId])
  t.match(woken, [{ queue: 'q', partition: 'p', group: 'g', count: 2 }])
  const first = await lease('q', { batch: 9 })
  t.match(first, { attempt: 1 })
  await finish(pool, first)
  const second = await take('q', { batch: 9 })
  t.same([...payloads(first), ...payloads(second)], [1, 3, 4])
})

test('a transaction whose push is refused acknowledges nothing', async (t) => {
  const { lease, pool, send, set } = await openStorage(t)
  await send('q', 'p', [1])
  await set('full', { maxSize: 1 })
  await send('full', 'p', [1])
  const held = await lease('q')
  const before = await dumpTables(pool)
  const refused = transaction(pool, { acks: [item(held)], pushes: [message('full', 'p', 2)] })
  t.match(await refusal(refused), { state: 'RS429' })
  t.same(await dumpTables(pool), before)
  t.match(await transaction(pool, { acks: [item(held)], pushes: [message('q', 'p', 2)] }), {
    pushed: [{ status: 'queued', seq: 2 }],
  })
})
