// A pop has a maximum number of bytes, and it leases exactly the rows that it returns.
import { ack, type PopDemand, pop, reapExpired } from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import {
  demand,
  finish,
  item,
  openStorage,
  payloads,
  type Storage,
  seqs,
} from '../support/storage.ts'

const MiB = 1024 * 1024

/** Returns a JSON string that takes this number of bytes in the log. */
function text(bytes: number): string {
  return 'x'.repeat(bytes - 2)
}

function sizes(result: Parameters<typeof payloads>[0]): number[] {
  return payloads(result).map((payload) => (payload as string).length + 2)
}

async function popAll({ pool }: Storage, demands: readonly PopDemand[], bytesMax?: number) {
  return pop(pool, { source: { queue: 'q' }, group: 'g', demands, bytesMax })
}

test('a pop returns what fits its byte limit and leaves the rest to the next one', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send } = storage
  await send('q', 'p', [text(400), text(400), text(400), text(400), text(400)])
  const first = await lease('q', { batch: 5, bytesMax: 1_000 })
  t.same(
    [seqs(first), sizes(first)],
    [
      [1, 2],
      [400, 400],
    ],
  )
  t.match(await rows('select to_seq, unacked::text from rouse.leases'), [
    { to_seq: '2', unacked: '11' },
  ])
  await finish(pool, first)
  const second = await lease('q', { batch: 5, bytesMax: 1_200 })
  t.same(seqs(second), [3, 4, 5], 'exactly as many bytes as allowed')
  t.same(await inconsistencies(pool), [])
})

test('headers count as bytes', async (t) => {
  const { lease, pool, rows, send } = await openStorage(t)
  await send('q', 'p', [1, 2, 3])
  await rows(`update rouse.messages set headers = '{"h":"' || repeat('x', 492) || '"}'`)
  t.same(seqs(await lease('q', { batch: 3, bytesMax: 1_010 })), [1, 2])
  t.same(await inconsistencies(pool), [])
})

test('the first message is returned whatever its size', async (t) => {
  const { lease, pool, send } = await openStorage(t)
  await send('q', 'p', [text(5_000), text(10), text(10)])
  const large = await lease('q', { batch: 3, bytesMax: 1_000 })
  t.same(seqs(large), [1])
  await finish(pool, large)
  t.same(seqs(await lease('q', { batch: 3, bytesMax: 1_000 })), [2, 3])
})

test('the byte limit of a waiter covers all its partitions', async (t) => {
  const storage = await openStorage(t)
  const { pool, send, take } = storage
  for (const partition of ['a', 'b', 'c']) await send('q', partition, [text(400), text(400)])
  const { leases } = await take('q', { batch: 6, partitions: 3, bytesMax: 1_300 })
  t.same(leases.map(seqs), [[1, 2], [1]])
  for (const lease of leases) await finish(pool, lease)
  const rest = await take('q', { batch: 6, partitions: 3, bytesMax: 1_300 })
  t.same(sizes(rest), [400, 400, 400])
  t.same(await inconsistencies(pool), [])
})

test('redelivered messages have the same limit', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, send, set, take } = storage
  await set('q', { onFailure: 'skip', retryBackoffMs: [0] })
  await send('q', 'p', [text(400), text(400), text(400)])
  const held = await lease('q', { batch: 3 })
  await ack(
    pool,
    [0, 1, 2].map((at) => item(held, at, 'failed')),
  )
  const again = await lease('q', { batch: 3, bytesMax: 1_000 })
  t.same([seqs(again), again.attempt], [[1, 2], 2])
  await finish(pool, again)
  t.same(sizes(await take('q', { batch: 3, bytesMax: 100 })), [400])
  t.same(await inconsistencies(pool), [])
})

test('a call for many waiters returns 64 MiB at most, and the next call serves the others', async (t) => {
  const storage = await openStorage(t)
  const { pool, rows, send, set } = storage
  await set('q', { ordering: 'none' })
  await send('q', 'p', [1])
  await rows(
    `with grown as (update rouse.partitions set head = 13)
     insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select p.id, s, gen_random_uuid(), p.last_created_at, '"' || repeat('x', ${8 * MiB - 2}) || '"'
     from rouse.partitions p, generate_series(2, 12) s`,
  )
  await rows(
    `update rouse.messages set payload = '"' || repeat('x', ${8 * MiB - 2}) || '"' where seq = 1`,
  )
  const waiters = Array.from({ length: 12 }, () => demand({}))
  const first = await popAll(storage, waiters)
  t.same([first.status, first.leases.length], ['messages', 8], 'eight times 8 MiB')
  const second = await popAll(storage, waiters)
  t.same([second.status, second.leases.length], ['messages', 4])
  t.same([...first.leases, ...second.leases].flatMap(seqs), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  t.same(await inconsistencies(pool), [])
})

for (const { partitions, what } of [
  { partitions: 1, what: 'one lane' },
  { partitions: 2, what: 'several lanes' },
]) {
  test(`a pop of ${what} leases only the rows it returns`, async (t) => {
    const storage = await openStorage(t)
    const { pool, rows, send, take } = storage
    await send('q', 'a', ['a1', 'a2', 'a3', 'a4'])
    await send('q', 'b', ['b1', 'b2', 'b3'])
    await rows(`delete from rouse.messages where payload in ('"a1"', '"a3"', '"b1"', '"b2"')`)
    const { leases } = await take('q', { batch: 9, partitions })
    const expected = [
      { partition: 'a', messages: [{ payload: '"a2"' }, { payload: '"a4"' }] },
      { partition: 'b', messages: [{ payload: '"b3"' }] },
    ].slice(0, partitions)
    t.match(leases, expected, 'each row in the lease of its own partition')
    t.equal(leases.length, partitions)
    t.match(
      await rows('select from_seq, to_seq, unacked::text from rouse.leases order by partition_id'),
      [
        { from_seq: '1', to_seq: '4', unacked: '0101' },
        { from_seq: '1', to_seq: '3', unacked: '001' },
      ].slice(0, partitions),
    )
    for (const lease of leases) await finish(pool, lease)
    const broken = await inconsistencies(pool)
    t.same(
      broken.filter((rule) => !rule.startsWith('the log is dense')),
      [],
    )
  })
}

test('a lane whose rows are all missing is skipped and continues with new messages', async (t) => {
  const { rows, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2, 3])
  await rows('delete from rouse.messages')
  t.not((await take('q', { batch: 2 })).status, 'messages')
  await take('q', { batch: 2 })
  t.equal((await take('q', { batch: 2 })).status, 'empty')
  t.same(await rows('select from rouse.leases'), [])
  await send('q', 'p', [4])
  t.same(payloads(await take('q', { batch: 2 })), [4])
})

test('a redelivery whose message is gone is dropped and leases nothing', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, rows, send, take } = storage
  await freezeClock(Date.parse('2030-01-01T00:00:00Z'))
  await send('q', 'p', [1, 2, 3])
  await lease('q', { batch: 2, leaseMs: 1_000 })
  await advanceClock(1_001)
  await reapExpired(pool)
  await rows('delete from rouse.messages where seq = 1')
  const status: string[] = []
  const got: unknown[] = []
  while (status.at(-1) !== 'empty') {
    const result = await take('q', { autoAck: true })
    status.push(result.status)
    got.push(...payloads(result))
  }
  t.same(got, [2, 3])
  t.same(await rows('select from rouse.leases union all select from rouse.redeliveries'), [])
})

test('every row of a pop names its waiter, its lease and its partition', async (t) => {
  const { rows, send, pool } = await openStorage(t)
  const popped = (lanes: number, waiters: number) =>
    rows(
      `select waiter, lease_id, partition_id from rouse.pop('q', null, null, null, 'g',
         array_fill(10, array[${waiters}]), array_fill(${lanes}, array[${waiters}]), null, null,
         array_fill('test'::text, array[${waiters}])) where status is null`,
    )
  const named = (row: object): boolean => Object.values(row).every((value) => value !== null)
  await send('q', 'a', ['a1', 'a2', 'a3'])
  const one = await popped(1, 1)
  t.equal(one.length, 3)
  t.ok(one.every(named), 'of one partition')
  await send('q', 'b', ['b1', 'b2'])
  await send('q', 'c', ['c1', 'c2'])
  const several = await popped(2, 2)
  t.equal(several.length, 4)
  t.ok(several.every(named), 'of several')
  await rows(`update rouse.leases set expires_at = rouse.now() - interval '1 second'`)
  await reapExpired(pool)
  const again = await popped(3, 1)
  t.ok(again.length > 0 && again.every(named), 'delivered again')
})
