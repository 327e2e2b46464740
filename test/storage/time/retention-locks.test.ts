// Retention concurrent with other calls: what it must not remove, what must not stop it, and how much a step
// does.
import { ack, push } from '@rouse/storage'
import { type Test, test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { retainRound } from '../support/retain-round.ts'
import { item, message, openStorage, payloads, type Storage, start } from '../support/storage.ts'

const day = 86_400_000

type Counts = Readonly<Record<string, number>>

/** Runs one step of the retention job that is due, as a node does. */
async function step({ rows }: Storage, limits: { rows?: number } = {}): Promise<Counts> {
  const found = await rows<{ kind: string; count: number }>(
    `select kind, count::float8 from rouse.retention_step('n', 60000, ${day}, ${14 * day}, ${7 * day}, ${7 * day}, null, 1000, $1)`,
    [limits.rows ?? 10_000],
  )
  return Object.fromEntries(found.map(({ kind, count }) => [kind, count]))
}

/** Makes one retention job due now, and the others never. */
async function onlyDue({ pool }: Storage, name: string): Promise<void> {
  await pool.query(
    `update rouse.chores set next_at = case when name = $1 then rouse.now() else 'infinity' end`,
    [name],
  )
}

/** Creates partitions with one consumed message each, two days old. */
async function consumed(storage: Storage, queue: string, partitions: readonly string[]) {
  await storage.freezeClock(start)
  await push(
    storage.pool,
    partitions.map((partition) => message(queue, partition, 1)),
  )
  await storage.take(queue, { batch: 999, partitions: 999, autoAck: true })
  await storage.advanceClock(2 * day)
}

async function expiringQueue(t: Test): Promise<Storage> {
  const storage = await openStorage(t)
  await storage.set('q', { retentionSeconds: 30 })
  await storage.freezeClock(start)
  await storage.send('q', 'p', [1, 2])
  await storage.take('q', { partition: 'nowhere' })
  await storage.advanceClock(30_001)
  return storage
}

for (const [barrier, options] of [
  ['pop-lane-locked', {}],
  ['pop-lane-leased', {}],
  ['pop-lanes-locked', { partitions: 2 }],
  ['pop-lanes-offered', { partitions: 2 }],
  ['pop-lanes-leased', { partitions: 2 }],
  ['pop-locked', { partition: 'p' }],
  ['pop-leased', { partition: 'p' }],
] as const) {
  test(`retention leaves unconsumed messages to a pop stopped at ${barrier}`, async (t) => {
    const storage = await expiringQueue(t)
    const { armBarrier, pool, rows, take } = storage
    const stopped = await armBarrier(barrier)
    const popped = take('q', { batch: 9, ...options })
    await stopped.reached()
    t.match(await retainRound(pool), { messages: 0, next: '0' })
    await stopped.release()
    t.same(payloads(await popped), [1, 2])
    t.equal((await rows('select from rouse.messages')).length, 2)
    t.same(await inconsistencies(pool), [])
  })
}

test('a pop does not deliver what an open step of retention removes', async (t) => {
  const { begin, pool, rows, send, take } = await expiringQueue(t)
  await send('q', 'p', ['young'])
  const client = await begin()
  t.match(await retainRound(client), { messages: 2 })
  const meanwhile = await take('q', { batch: 9 })
  t.same([payloads(meanwhile), meanwhile.status], [[], 'contended'])
  await client.query('commit')
  t.same(payloads(await take('q', { batch: 9 })), ['young'])
  t.same(await inconsistencies(pool), [])
  t.same(await rows('select from_seq from rouse.leases'), [{ from_seq: '3' }])
})

test('a step of retention sees what was delivered before it locked the lanes', async (t) => {
  const { armBarrier, lease, pool, rows } = await expiringQueue(t)
  const locked = await armBarrier('retain-locked')
  const retained = retainRound(pool)
  await locked.reached()
  await lease('q')
  await locked.release()
  t.match(await retained, { messages: 0 })
  t.equal((await rows('select from rouse.messages')).length, 2)
  t.same(await inconsistencies(pool), [])
})

test('consumed messages are removed even if lanes are locked', async (t) => {
  const storage = await openStorage(t)
  const { begin, pool } = storage
  await consumed(storage, 'q', ['p'])
  const client = await begin()
  await client.query('select from rouse.lanes for update')
  t.match(await retainRound(pool), { messages: 1, next: '0' })
})

test('a group that is created while a step removes messages gets none of them', async (t) => {
  const storage = await openStorage(t)
  const { begin, pool, rows, take, waiting } = storage
  await consumed(storage, 'q', ['p'])
  const client = await begin()
  t.match(await retainRound(client), { messages: 1 })
  const first = take('q', { group: 'late' })
  await waiting()
  await client.query('commit')
  t.same(payloads(await first), [])
  t.same(await rows('select from rouse.leases'), [])
  t.same(await inconsistencies(pool), [])
})

test('locked partitions cost a step time, but the round completes', async (t) => {
  const storage = await openStorage(t)
  const { begin, rows } = storage
  const names = Array.from({ length: 40 }, (_, i) => `locked ${i}`)
  await consumed(storage, 'q', [...names, 'free'])
  const client = await begin()
  await client.query(`select from rouse.partitions where name <> 'free' for update`)
  await onlyDue(storage, 'retention')
  let [steps, most, passed] = [0, 0, 0]
  do {
    const counts = await step(storage)
    most = Math.max(most, counts.passed ?? 0)
    passed += counts.passed ?? 0
    steps += 1
    await storage.advanceClock(500)
  } while (steps < 100 && (await rows(`select from rouse.chores where position <> 0`)).length > 0)
  t.ok(most <= 4, `${most} partitions waited for in one step`)
  t.equal(passed, 40)
  const left = await rows(
    `select from rouse.messages m join rouse.partitions p on p.id = m.partition_id where p.name = 'free'`,
  )
  t.same(left, [])
  const [chore] = await rows<{ soon: boolean }>(
    `select next_at - last_at between interval '1 second' and interval '2 seconds' as soon
     from rouse.chores where name = 'retention'`,
  )
  t.ok(chore?.soon, 'the next round comes in a second')
})

test('only a queue in which a group is being created is skipped', async (t) => {
  const storage = await openStorage(t)
  const { armBarrier, pool, rows, take } = storage
  await consumed(storage, 'busy', ['p'])
  await consumed(storage, 'other', ['p'])
  const birth = await armBarrier('subscribe-locked')
  const first = take('busy', { group: 'late' })
  await birth.reached()
  t.match(await retainRound(pool), { messages: 1, next: '0' })
  await birth.release()
  t.equal((await first).leases.length, 1)
  const kept = await rows(
    `select q.name from rouse.messages m join rouse.partitions p on p.id = m.partition_id
     join rouse.queues q on q.id = p.queue_id`,
  )
  t.same(kept, [{ name: 'busy' }])
})

test('locked keys and dead letters stay and block nothing', async (t) => {
  const storage = await openStorage(t)
  const { begin, freezeClock, lease, pool, rows } = storage
  await freezeClock(start)
  for (const key of ['a', 'b']) await push(pool, [message('q', 'p', key, { transactionId: key })])
  const held = await lease('q', { batch: 2 })
  await ack(pool, [item(held, 0, 'dlq'), item(held, 1, 'dlq')])
  await storage.advanceClock(30 * day)
  const client = await begin()
  await client.query(`select from rouse.dedup where key = 'a' for update`)
  await client.query(`select from rouse.dead_letters where payload = '"a"' for update`)
  t.match(await retainRound(pool), { deadLetters: 1, dedup: 0, attempts: 2 })
  await client.query('rollback')
  t.match(await retainRound(pool), { deadLetters: 1, dedup: 2 })
  t.same(await rows('select from rouse.dedup'), [])
})

test('a key that is used again after it expired is not swept', async (t) => {
  const { advanceClock, freezeClock, pool, rows } = await openStorage(t)
  await freezeClock(start)
  await push(pool, [message('q', 'p', 1, { transactionId: 'k' })])
  await advanceClock(3_600_001)
  await push(pool, [message('q', 'p', 2, { transactionId: 'k' })])
  t.match(await retainRound(pool), { dedup: 0 })
  t.equal((await rows('select from rouse.dedup')).length, 1)
})

test('a partition with much to remove does not keep others from their turn', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, rows, send, take } = storage
  await freezeClock(start)
  await send('q', 'much', Array(100).fill(0))
  await send('q', 'little', [1])
  await take('q', { batch: 999, partitions: 9, autoAck: true })
  await advanceClock(2 * day)
  await onlyDue(storage, 'retention')
  const left = async (name: string) =>
    (
      await rows(
        `select from rouse.messages m join rouse.partitions p on p.id = m.partition_id where p.name = $1`,
        [name],
      )
    ).length
  let steps = 0
  for (; steps < 100 && (await left('little')) > 0; steps += 1) {
    await step(storage, { rows: 1 })
    await advanceClock(1_500)
  }
  t.ok((await left('much')) > 50, `after ${steps} steps`)
})
