// maxInFlightPerPartition: how many messages of one partition a consumer group holds at once.
import {
  ack,
  configure,
  type Lease,
  pop,
  promoteReady,
  purge,
  reapExpired,
  release,
  seek,
  transaction,
} from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import {
  demand,
  finish,
  item,
  openStorage,
  payloads,
  type Storage,
  start,
} from '../support/storage.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

/** A queue without order, of which a group may hold two messages per partition. */
async function openLimited(t: Parameters<typeof openStorage>[0], options: object = {}) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', { ordering: 'none', maxInFlightPerPartition: 2, ...options })
  return storage
}

const isFull = async ({ rows }: Storage, partition = 'p') =>
  (
    await rows(
      `select from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
       where p.name = $1 and l.blocked_until = 'infinity'`,
      [partition],
    )
  ).length === 1

test('a group holds at most this many messages of a partition, and gets those of others', async (t) => {
  const storage = await openLimited(t)
  const { send, take } = storage
  await send('q', 'p', numbers(5))
  await send('q', 'r', [7, 8, 9])
  t.same(payloads(await take('q', { batch: 9, partitions: 9 })), [0, 1, 7, 8])
  t.match(await take('q', { batch: 9 }), { status: 'empty', opensAtMs: null })
  t.ok((await isFull(storage)) && (await isFull(storage, 'r')))
  t.same(
    payloads(await take('q', { batch: 9, group: 'h' })),
    [0, 1],
    'another group has its own limit',
  )
})

test('several waiters and later pops share the limit of a lane', async (t) => {
  const storage = await openLimited(t, { maxInFlightPerPartition: 3 })
  const { pool, send, take } = storage
  await send('q', 'p', numbers(9))
  const demands = numbers(2).map(() => demand({}))
  const { leases } = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
  t.same(payloads({ leases }), [0, 1])
  t.same(payloads(await take('q', { batch: 9 })), [2])
  t.equal((await take('q')).status, 'empty')
})

test('an ordered partition has one lease at a time: the limit bounds its batch', async (t) => {
  const storage = await openLimited(t, { ordering: 'partition' })
  const { lane, lease, pool, send, take } = storage
  await send('q', 'p', numbers(5))
  const held = await lease('q', { batch: 9 })
  t.same(payloads(held), [0, 1])
  t.equal((await lane()).blocked_until, null)
  await finish(pool, held)
  t.same(payloads(await take('q', { batch: 9 })), [2, 3])
})

const endings: Record<string, (storage: Storage, held: Lease) => Promise<unknown>> = {
  'an ack of one message': async ({ pool }, held) => (await ack(pool, [item(held)])).woken,
  'an ack of the whole lease': async ({ pool }, held) => (await finish(pool, held)).woken,
  'a failure': async ({ pool }, held) => (await ack(pool, [item(held, 0, 'failed')])).woken,
  'a dead letter': async ({ pool }, held) => (await ack(pool, [item(held, 0, 'dlq')])).woken,
  'a release': async ({ pool }, held) => (await release(pool, [held.leaseId])).woken,
  'a transaction': async ({ pool }, held) =>
    (await transaction(pool, { acks: [item(held)], pushes: [] })).woken,
  'an expired lease': async ({ advanceClock, pool }) => {
    await advanceClock(3_600_000)
    return reapExpired(pool)
  },
  'a part acknowledged by ack_in': async ({ begin, pool }, held) => {
    const client = await begin()
    const { seq } = held.messages[0] as { seq: number }
    await client.query('select rouse.ack_in($1, $2, $3)', [held.leaseId, held.partitionId, seq])
    await client.query('commit')
    return (await promoteReady(pool, 9)).woken
  },
  'a lease ended by ack_in': async ({ begin, pool }, held) => {
    const client = await begin()
    for (const { seq } of held.messages) {
      await client.query('select rouse.ack_in($1, $2, $3)', [held.leaseId, held.partitionId, seq])
    }
    await client.query('commit')
    return (await promoteReady(pool, 9)).woken
  },
}

for (const [name, end] of Object.entries(endings)) {
  test(`${name} opens a full lane and wakes its waiters`, async (t) => {
    const storage = await openLimited(t, { retryBackoffMs: [0] })
    const { lease, pool, send, take } = storage
    await send('q', 'p', numbers(5))
    const held = await lease('q', { batch: 2 })
    t.ok(await isFull(storage))
    t.match(await end(storage, held), [{ queue: 'q', partition: 'p', group: 'g' }])
    t.notOk(await isFull(storage))
    t.equal((await take('q')).status, 'messages')
    t.same(await inconsistencies(pool), [])
  })
}

for (const [name, open] of Object.entries({
  'a seek': ({ pool }: Storage) => seek(pool, { queue: 'q', group: 'g', to: 'end' }),
  'a purge': ({ pool }: Storage) => purge(pool, 'q'),
  'a higher limit': ({ set }: Storage) => set('q', { maxInFlightPerPartition: 3 }),
  'no limit': ({ set }: Storage) => set('q', { maxInFlightPerPartition: 0 }),
})) {
  test(`${name} opens a full lane`, async (t) => {
    const storage = await openLimited(t)
    const { send, take } = storage
    await send('q', 'p', numbers(5))
    await take('q', { batch: 2 })
    await open(storage)
    await send('q', 'p', [5])
    t.equal((await take('q')).status, 'messages')
  })
}

test('messages acknowledged on delivery do not fill a lane', async (t) => {
  const storage = await openLimited(t)
  const { send, take } = storage
  await send('q', 'p', numbers(5))
  t.equal(payloads(await take('q', { batch: 9, autoAck: true })).length, 2)
  t.notOk(await isFull(storage))
  t.equal((await take('q')).status, 'messages')
})

test('leases from before the limit count against it', async (t) => {
  const storage = await openLimited(t, { maxInFlightPerPartition: 0 })
  const { pool, send, set, take } = storage
  await send('q', 'p', numbers(9))
  const { leases } = await take('q', { batch: 3 })
  await set('q', { maxInFlightPerPartition: 2 })
  t.equal((await take('q')).status, 'empty')
  await ack(pool, [item(leases[0] as Lease)])
  t.equal((await take('q')).status, 'empty', 'it still holds two')
  await ack(pool, [item(leases[0] as Lease, 1)])
  t.equal((await take('q')).status, 'messages')
})

test('an ack beside a pop that counts what is held does not leave a lane closed', async (t) => {
  const storage = await openLimited(t)
  const { armBarrier, lease, pool, send, take, waiting } = storage
  await send('q', 'p', numbers(5))
  const held = await lease('q')
  // The pop has counted one held message, takes the second, and will close the lane.
  const barrier = await armBarrier('pop-settling')
  const popped = take('q', { batch: 9 })
  await barrier.reached()
  const acked = finish(pool, held).catch((error: { code?: string }) => {
    // The lock timeout of the call, if the machine is slow.
    if (error.code !== '55P03') throw error
    return finish(pool, held)
  })
  await waiting()
  await barrier.release()
  await popped
  t.match((await acked).woken, [{ queue: 'q', partition: 'p', group: 'g' }])
  t.notOk(await isFull(storage))
  t.same(payloads(await take('q')), [2])
  t.same(await inconsistencies(pool), [])
})

test('concurrent pops and acks never hold more than the limit of a partition', async (t) => {
  const storage = await openLimited(t, { maxInFlightPerPartition: 3 })
  const { pool, rows, send, take } = storage
  for (const partition of ['p', 'r']) await send('q', partition, numbers(60))
  let worst = 0
  const patient = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (!['55P03', 'RS001', '40P01'].includes((error as { code: string }).code)) throw error
      }
    }
  }
  const consumer = async () => {
    for (let empty = 0; empty < 20; ) {
      const { leases } = await patient(() => take('q', { batch: 2, partitions: 2 }))
      const [row] = await rows<{ most: number }>(
        `select coalesce(max(n), 0)::integer as most
         from (select sum(bit_count(unacked)) as n from rouse.leases group by partition_id) s`,
      )
      worst = Math.max(worst, row?.most ?? 0)
      empty = leases.length === 0 ? empty + 1 : 0
      for (const one of leases) await patient(() => finish(pool, one))
    }
  }
  await Promise.all(numbers(6).map(consumer))
  t.ok(worst <= 3 && worst > 0, `${worst} held at once`)
  t.same(
    await rows(
      'select from rouse.lanes l join rouse.partitions p on p.id = l.partition_id where l.next < p.head',
    ),
    [],
  )
  t.same(await inconsistencies(pool), [])
})

test('the limit is an integer from 0', async (t) => {
  const { pool } = await openStorage(t)
  for (const value of [-1, 1.5, '5', 1_000_001]) {
    const call = configure(pool, { queue: 'q', options: { maxInFlightPerPartition: value } })
    await t.rejects(call, { code: 'RS400' })
  }
})
