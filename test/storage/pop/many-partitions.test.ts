// The first pop of a group that is new or was moved by a seek, on a queue with many partitions: it finds the
// deliverable message, however many drained lanes come before it.
import { seek } from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { openStorage, payloads, type Storage } from '../support/storage.ts'

const partitions = Number(process.env.ROUSE_TEST_PARTITIONS ?? 3_000)

/** A queue with one old message in each of many partitions. */
async function openWide(t: Parameters<typeof openStorage>[0]): Promise<Storage> {
  const storage = await openStorage(t)
  const { rows, send } = storage
  await send('q', 'first', [0])
  await rows(
    `insert into rouse.partitions (queue_id, name, head, last_created_at)
     select q.id, 'p' || n, 2, p.last_created_at from rouse.queues q, rouse.partitions p, generate_series(1, $1::integer) n
     order by n`,
    [partitions],
  )
  await rows(
    `insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select p.id, 1, gen_random_uuid(), p.last_created_at, '"old"' from rouse.partitions p where p.name <> 'first'`,
  )
  await rows('analyze rouse.partitions, rouse.messages')
  return storage
}

async function readyLanes({ rows }: Storage): Promise<number> {
  const [found] = await rows<{ n: string }>('select count(*) as n from rouse.lanes where ready')
  return Number(found?.n)
}

for (const at of ['p1', `p${Math.ceil(partitions / 2)}`, `p${partitions}`]) {
  test(`the first pop after a push to ${at} of ${partitions} partitions finds it for a new group`, async (t) => {
    const storage = await openWide(t)
    const { pool, send, take } = storage
    t.equal((await take('q', { subscription: 'new' })).status, 'empty', 'nothing is new yet')
    await send('q', at, ['fresh'])
    t.same(payloads(await take('q', { autoAck: true })), ['fresh'])
    t.equal((await take('q')).status, 'empty', 'empty, and not contended')
    t.same(await inconsistencies(pool), [])
  })
}

test('pops settle drained lanes by the thousand', async (t) => {
  const storage = await openWide(t)
  const { pool, take } = storage
  await take('q', { subscription: 'new' })
  for (let pops = 0; pops < 5 && (await readyLanes(storage)) > 0; pops += 1) await take('q')
  t.equal(await readyLanes(storage), 0)
  t.same(await inconsistencies(pool), [])
})

test('a push that meets the settling of its drained lane is found', async (t) => {
  const storage = await openWide(t)
  const { armBarrier, send, take } = storage
  await take('q', { subscription: 'new' })
  // The pop above has settled lanes. Make all lanes ready, so that the next pop has a lane to settle.
  await storage.rows('update rouse.lanes set ready = true')
  const settling = await armBarrier('settle-drained-locked')
  const popping = take('q')
  await settling.reached()
  const pushing = send('q', 'p2', ['fresh'])
  await storage.waiting()
  await settling.release()
  t.equal((await popping).status, 'empty')
  await pushing
  t.same(payloads(await take('q')), ['fresh'])
})

test('a push in progress while drained lanes are settled leaves its lane ready', async (t) => {
  const storage = await openWide(t)
  const { begin, send, take } = storage
  await take('q', { subscription: 'new' })
  await storage.rows('update rouse.lanes set ready = true')
  const producer = await begin()
  await send('q', 'p2', ['fresh'], producer)
  t.equal((await take('q')).status, 'empty')
  await producer.query('commit')
  t.same(payloads(await take('q')), ['fresh'])
})

test('a seek leaves only lanes with messages ready', async (t) => {
  const storage = await openWide(t)
  const { pool, rows, send, take } = storage
  await take('q', { subscription: 'new' })
  const [{ now } = { now: new Date() }] = await rows<{ now: Date }>('select rouse.now() as now')
  await send('q', 'p7', ['fresh'])
  await seek(pool, { queue: 'q', group: 'g', to: now })
  t.equal(await readyLanes(storage), 1)
  t.same(payloads(await take('q', { autoAck: true })), ['fresh'])
  await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
  t.equal(await readyLanes(storage), partitions + 1)
  await seek(pool, { queue: 'q', group: 'g', to: 'end' })
  t.equal(await readyLanes(storage), 0)
  t.same(await inconsistencies(pool), [])
})
