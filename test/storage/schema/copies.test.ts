// A restored copy of a database is recognized, and its schedules and redrives do not run until it is adopted.
import { randomUUID } from 'node:crypto'
import {
  ack,
  adoptCopy,
  dueSchedules,
  exchangeNodes,
  fireSchedule,
  joinCluster,
  promoteDue,
  queueFacts,
  readCopyState,
  redriveStep,
  startRedrive,
} from '@rouse/storage'
import type pg from 'pg'
import { test } from 'tap'
import { item, openStorage, payloads, type Storage } from '../support/storage.ts'

const moved = `update rouse.cluster set database_name = 'original'`
const otherServer = 'update rouse.cluster set system_identifier = system_identifier # 1'

test('the first nodes to join record where the database is, and all get the same id', async (t) => {
  const { pool, rows } = await openStorage(t)
  t.match(await readCopyState(pool), { copyOf: undefined, systemIdentifier: /^-?\d+$/ })
  const joined = await Promise.all(Array.from({ length: 8 }, () => joinCluster(pool)))
  t.equal(new Set(joined.map(({ clusterId }) => clusterId)).size, 1)
  t.equal(new Set(joined.map(({ incarnation }) => incarnation)).size, 8)
  t.match(await rows('select database_name = current_database() as here, * from rouse.cluster'), [
    { here: true, id: joined[0]?.clusterId, system_identifier: /^-?\d+$/ },
  ])
  t.equal((await readCopyState(pool)).copyOf, undefined)
  t.equal(await adoptCopy(pool), undefined, 'there is nothing to adopt')
  t.equal((await joinCluster(pool)).clusterId, joined[0]?.clusterId)
})

for (const [what, change] of [
  ['under another name', moved],
  ['on another server', otherServer],
] as const) {
  test(`in a copy ${what}, schedules and redrives stand still until it is adopted`, async (t) => {
    const storage = await openStorage(t)
    const { pool, rows } = storage
    const original = await joinCluster(pool)
    const { fire, step } = await makeWork(storage)
    await pool.query(change)

    const { copyOf, schedules, redrives } = await readCopyState(pool)
    t.ok(copyOf)
    t.same({ schedules, redrives }, { schedules: ['nightly'], redrives: 1 })
    t.same((await queueFacts(pool, 'q', undefined))?.copyOf, copyOf)
    t.same((await exchange(pool)).copyOf, copyOf)
    t.same(await dueSchedules(pool, 10, []), [])
    t.same(await fire(), [], 'not even for a node that read the schedule before')
    t.equal(await step(), undefined)
    t.match(await rows('select moved from rouse.redrives'), [{ moved: '0' }])

    const copies = await Promise.all(Array.from({ length: 4 }, () => joinCluster(pool)))
    const [clusterId, ...different] = new Set(copies.map((copy) => copy.clusterId))
    t.same(different, [], 'the nodes of the copy agree')
    t.not(clusterId, original.clusterId, 'and do not gossip with those of the original')
    t.same((await readCopyState(pool)).copyOf, copyOf, 'joining does not adopt the copy')

    const adopted = await Promise.all(Array.from({ length: 4 }, () => adoptCopy(pool)))
    t.same(
      adopted.filter((one) => one !== undefined),
      [{ clusterId }],
      'one call adopts it, under the id that its nodes use already',
    )
    t.equal((await joinCluster(pool)).clusterId, clusterId)
    t.equal((await queueFacts(pool, 'q', undefined))?.copyOf, null)
    t.equal((await exchange(pool)).copyOf, undefined)
    t.equal((await dueSchedules(pool, 10, [])).length, 1)
    t.match(await fire(), [{ queue: 'ticks', count: 1 }])
    t.match(await step(), { nextInMs: null })
    t.same(payloads(await storage.take('q')), ['dead'])
  })
}

test('a copy of a copy is another cluster again', async (t) => {
  const { pool } = await openStorage(t)
  const ids = [(await joinCluster(pool)).clusterId]
  for (const name of ['first', 'second']) {
    await pool.query('update rouse.cluster set database_name = $1', [name])
    ids.push(String((await adoptCopy(pool))?.clusterId))
  }
  t.equal(new Set(ids).size, 3)
})

test('a role that may not read the system identifier recognizes a copy by its name only', async (t) => {
  const { pool, rows } = await openStorage(t)
  await joinCluster(pool)
  const role = `rouse_test_${randomUUID().replaceAll('-', '')}`
  const client = await pool.connect()
  t.teardown(async () => {
    await client.query(`reset role; grant execute on function pg_control_system() to public`)
    await client.query(`drop owned by ${role}; drop role ${role}`)
    client.release(true)
  })
  await client.query(`revoke execute on function pg_control_system() from public;
    create role ${role}; grant usage on schema rouse to ${role};
    grant execute on all functions in schema rouse to ${role};
    grant select, update on all tables in schema rouse to ${role};
    grant usage, update on all sequences in schema rouse to ${role}; set role ${role}`)
  const limited = client as unknown as pg.Pool
  t.match(await readCopyState(limited), { copyOf: undefined, systemIdentifier: null })
  await pool.query(otherServer)
  t.equal((await readCopyState(limited)).copyOf, undefined)
  await pool.query(`${otherServer}; ${moved}`)
  t.match((await readCopyState(limited)).copyOf, { database: 'original' })
  t.ok(await adoptCopy(limited))
  const recorded = async () =>
    (await rows<{ system_identifier: string | null }>('table rouse.cluster'))[0]
  t.equal((await recorded())?.system_identifier, null)
  const { clusterId } = await joinCluster(limited)
  t.equal((await recorded())?.system_identifier, null)
  t.equal((await joinCluster(pool)).clusterId, clusterId, 'a node that may read it')
  t.match((await recorded())?.system_identifier, /^-?\d+$/, 'adds what was missing')
})

/** A schedule that is due, and a redrive that has not begun. */
async function makeWork({ pool, rows, send, take }: Storage) {
  await rows(`insert into rouse.schedules (name, queue, cron, next_at, created_at)
    values ('nightly', 'ticks', '0 3 * * *', date_trunc('second', rouse.now()), rouse.now())`)
  const [schedule] = await dueSchedules(pool, 10, [])
  if (schedule === undefined) throw new Error('the schedule is not due')
  await send('q', 'p', ['dead'])
  const { leases } = await take('q')
  const leaseId = String(leases[0]?.leaseId)
  await ack(pool, [{ leaseId, status: 'dlq' }])
  await startRedrive(pool, { id: randomUUID(), queue: 'q', where: {}, rate: undefined })
  return {
    fire: () =>
      fireSchedule(pool, {
        id: schedule.id,
        seen: schedule.nextAt,
        messageIds: [randomUUID()],
        ticks: [schedule.nextAt],
        nextAt: null,
        sealed: undefined,
      }),
    step: () => redriveStep(pool, 'node'),
  }
}

function exchange(pool: pg.Pool) {
  const own = { id: 'a', incarnation: 1, httpUrl: null, gossipAddress: 'a:1', version: '1' }
  return exchangeNodes(pool, own, 30_000)
}

test('in a copy, deadLetterTo moves every letter once, before and after it is adopted', async (t) => {
  const { lease, pool, rows, send, set, take } = await openStorage(t)
  await joinCluster(pool)
  await set('q', { deadLetterTo: 'letters' })
  await send('q', 'p', [1, 2, 3])
  const giveUp = async () => ack(pool, [item(await lease('q'), 0, 'dlq')])
  await giveUp()
  // The dump is made between the ack and the promotion of the letter.
  await pool.query(moved)
  await promoteDue(pool)
  await giveUp()
  await promoteDue(pool)
  await giveUp()
  t.ok(await adoptCopy(pool))
  for (let times = 0; times < 2; times += 1) await promoteDue(pool)
  t.same(payloads(await take('letters', { batch: 9 })), [1, 2, 3])
  t.same(await rows('select from rouse.scheduled'), [])
  t.same(await rows('select from rouse.dead_letters'), [])
})
