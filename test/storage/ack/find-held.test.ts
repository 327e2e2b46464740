import { randomUUID } from 'node:crypto'
import { ack, findHeld, type Lease, promoteDue, push } from '@rouse/storage'
import { type Test, test } from 'tap'
import { item, message, openStorage, start } from '../support/storage.ts'

/** A storage with two keyed messages and one without a key in partition `p`, under one lease. */
async function heldStorage(t: Test, options: Record<string, unknown> = {}) {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, set } = storage
  await freezeClock(start)
  await set('q', options)
  await push(pool, [
    message('q', 'p', 1, { transactionId: 'one' }),
    message('q', 'p', 2),
    message('q', 'p', 3, { transactionId: 'three' }),
  ])
  const held = await lease('q', { batch: 3, leaseMs: 10_000 })
  /** The seqs of the keys that were found. */
  const find = async (keys: readonly string[], { leaseId, partitionId }: Partial<Lease> = held) => {
    const names = keys.map((transactionId) => ({
      leaseId: leaseId ?? held.leaseId,
      partitionId: partitionId ?? held.partitionId,
      transactionId,
    }))
    const found = await findHeld(pool, names)
    return Object.fromEntries(found.map(({ transactionId, seq }) => [transactionId, seq]))
  }
  return { ...storage, held, find }
}

for (const ordering of ['partition', 'none']) {
  for (const window of ['within', 'after']) {
    test(`messages of a lease are found by key ${window} the dedupe window (ordering ${ordering})`, async (t) => {
      const { find, held, pool } = await heldStorage(t, { ordering })
      if (window === 'after') await pool.query('delete from rouse.dedup')
      t.same(await find(['one', 'three']), { one: 1, three: 3 })
      t.same(await find(['three', 'two', '']), { three: 3 })
      t.same(await find([`${held.partitionId}-2`]), {}, 'a derived id is not stored')
      t.same(await find([]), {})
      t.same(await find(['one \u0000']), {})
      await ack(pool, [item(held, 0)])
      t.same(await find(['one', 'three']), { three: 3 }, 'the first is no longer held')
    })
  }
}

test('a key is found only in the lease and the partition that it is given with', async (t) => {
  const { find, lease, pool } = await heldStorage(t)
  await push(pool, [message('q', 'other', 1, { transactionId: 'one' })])
  const other = await lease('q', { partition: 'other' })
  t.same(await find(['one'], { partitionId: other.partitionId }), {})
  t.same(await find(['one'], { leaseId: other.leaseId }), {})
  t.same(await find(['one'], { leaseId: randomUUID() }), {})
  t.same(await find(['one'], other), { one: 1 })
})

test('an expired lease holds no message', async (t) => {
  const { advanceClock, find, pool } = await heldStorage(t)
  await advanceClock(10_000)
  t.same(await find(['one']), {})
  await pool.query('delete from rouse.dedup')
  t.same(await find(['one']), {})
})

test('a key that was used again is found in the lease, although its newest message is not in it', async (t) => {
  const { find, pool } = await heldStorage(t, { ordering: 'none' })
  await pool.query('delete from rouse.dedup')
  await push(pool, [message('q', 'p', 4, { transactionId: 'one' })])
  t.same(await find(['one']), { one: 1 })
})

test('of two messages with the same key in a lease, the older is found', async (t) => {
  const { find, freezeClock, lease, pool } = await heldStorage(t)
  await freezeClock(start)
  for (const payload of [1, 2]) {
    await push(pool, [message('twins', 'p', payload, { transactionId: 'same' })])
    await pool.query('delete from rouse.dedup')
  }
  const twins = await lease('twins', { batch: 2 })
  t.same(await find(['same'], twins), { same: 1 })
})

test('a scheduled message is found by its id', async (t) => {
  const { advanceClock, find, lease, pool } = await heldStorage(t)
  const later = message('later', 'p', 1, { delayMs: 1_000 })
  await push(pool, [later])
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(await find([later.id], await lease('later')), { [later.id]: 1 })
})
