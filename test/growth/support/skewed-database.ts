// A database as after years of use: one partition has most of the messages, many others have a few each, one
// group is abandoned, and every other table has rows. The tables are filled directly, to any size.
import { testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import type { Test } from 'tap'

export interface Size {
  /** Messages in the one partition of queue `hot`, which has `groups` groups. */
  readonly hot: number
  readonly groups: number
  /** Partitions of queue `cold`, with five messages each. */
  readonly cold: number
  /** Queues q00001, q00002, … with two partitions of ten messages each. */
  readonly queues: number
  /** Leases of the one partition of queue `loose`, which is unordered. */
  readonly loose: number
  /**
   * Messages of the one partition of queue `ended`, which no group has consumed. All but the last ten are
   * cancelled. As many more were cancelled while they were scheduled, in two partitions.
   */
  readonly ended: number
  /** Dead letters of `hot`. In addition, `cold` has one per partition, and each queue q00001, … has two. */
  readonly letters: number
  /** Dedupe keys of `hot`: those of its newest messages. */
  readonly keys: number
  readonly traces: number
  readonly schedules: number
  /** Dead rows in each of the tables of leases, redeliveries and scheduled messages. */
  readonly dead: number
}

export const small: Size = {
  hot: 10_000,
  groups: 50,
  cold: 600,
  queues: 200,
  loose: 50,
  ended: 400,
  letters: 600,
  keys: 1_000,
  traces: 500,
  schedules: 150,
  dead: 100,
}

/** The size of a database with a number of messages. All other sizes are in proportion. */
export function sizeFor(messages: number): Size {
  const part = (of: number): number => Math.max(1, Math.round((of * messages) / 1_000_000))
  return {
    hot: part(800_000),
    groups: 50,
    cold: part(20_000),
    queues: part(5_000),
    loose: part(3_000),
    ended: part(20_000),
    letters: part(50_000),
    keys: part(100_000),
    traces: part(40_000),
    schedules: part(2_000),
    dead: part(5_000),
  }
}

/** The lanes of queue `cold` have four states in turn, by partition number: a quarter of them are leased. */
const coldStates = 4
export const leasedCold = (size: Size): number => size.cold / coldStates
export const leasesIn = (size: Size): number => leasedCold(size) + size.loose
export const lettersIn = (size: Size): number => size.letters + size.cold + 2 * size.queues

export interface SkewedDatabase {
  readonly client: pg.PoolClient
  readonly size: Size
  /** The ids of one partition of each queue. The one of `cold` is leased, and in the middle of the queue. */
  readonly partitions: Readonly<Record<'hot' | 'loose' | 'cold' | 'q00070', string>>
}

export async function skewedDatabase(t: Test, size: Size): Promise<SkewedDatabase> {
  const { pool } = await testDatabase(t, { instrumented: false, poolMax: 1 })
  const client = await pool.connect()
  t.teardown(() => client.release())
  const { rows: tables } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'rouse'`,
  )
  for (const { name } of tables)
    await client.query(`alter table ${name} set (autovacuum_enabled = off)`)
  await client.query(`set synchronous_commit = off`)
  await client.query(`set session_replication_role = replica`) // no triggers: there is no node to notify
  await fillQueues(client, size)
  await fillLog(client, size)
  await fillLanes(client, size)
  await fillDeliveries(client, size)
  await fillRest(client, size)
  await leaveDeadRows(client, size)
  await client.query(`set session_replication_role = origin`)
  const { rows } = await client.query<{ queue: string; id: string }>(
    `select q.name as queue, p.id from rouse.queues q join rouse.partitions p on p.queue_id = q.id
     where (q.name, p.name) in (('hot', 'p0'), ('loose', 'p0'), ('cold', 'c' || $1), ('q00070', 'a'))`,
    [Math.floor(size.cold / coldStates / 2) * coldStates],
  )
  const partitions = Object.fromEntries(rows.map(({ queue, id }) => [queue, id]))
  return { client, size, partitions: partitions as unknown as SkewedDatabase['partitions'] }
}

async function fillQueues(client: pg.ClientBase, size: Size): Promise<void> {
  await client.query(`select rouse.write_queue('hot', null, null, '{"onFailure": "skip"}', false)`)
  await client.query(`select rouse.write_queue('cold', null, null, '{}', false)`)
  await client.query(`select rouse.write_queue('loose', null, null, '{"ordering": "none"}', false)`)
  await client.query(`select rouse.write_queue('ended', null, null, '{}', false)`)
  await client.query(
    `select rouse.write_queue('limited', null, null, '{"maxSize": 1000000}', false)`,
  )
  const { rows } = await client.query<{ columns: string }>(
    `select string_agg(column_name, ', ') as columns from information_schema.columns
     where table_schema = 'rouse' and table_name = 'queues' and is_generated = 'NEVER'
       and column_name not in ('id', 'name', 'namespace', 'task')`,
  )
  const columns = rows[0]?.columns
  // A namespace has few queues. A task has a tenth of all queues.
  await client.query(
    `insert into rouse.queues (name, namespace, task, ${columns})
     select 'q' || lpad(n::text, 5, '0'), 'ns' || n / 10, 't' || n % 10, ${columns}
     from rouse.queues, generate_series(1, $1) n where name = 'cold' order by n`,
    [size.queues],
  )
  await client.query(
    `insert into rouse.groups (queue_id, name, created_at, last_seen_at)
     select q.id, g, now() - interval '60 days', case when g = 'abandoned' then now() - interval '30 days' else now() end
     from rouse.queues q, lateral (
       select 'g' || lpad(n::text, 2, '0') as g from generate_series(1, case q.name when 'hot' then $1 - 1 when 'cold' then 3 else 1 end) n
       union all select 'abandoned' where q.name in ('hot', 'cold')) g`,
    [size.groups],
  )
  await client.query(
    `insert into rouse.idle_groups (group_id, since, messages, measured_at, let_go_at, warned_at)
     select id, last_seen_at, 1000, now(), now() - interval '16 days', now() from rouse.groups where name = 'abandoned'`,
  )
}

/**
 * The messages of `hot` are from the last two days, and the first twentieth is deleted. All others are
 * recent.
 */
async function fillLog(client: pg.ClientBase, size: Size): Promise<void> {
  const gone = size.hot / 20
  await client.query(
    `insert into rouse.partitions (queue_id, name, head, tail, swept_to, last_created_at)
     select q.id, s.partition, s.head, s.tail, s.tail, now() from (
       select 'hot' as queue, 'p0' as partition, $1::bigint + 1 as head, $2::bigint + 1 as tail
       union all select 'loose', 'p0', 10 * $3::bigint + 1, 1
       union all select 'limited', 'p0', 11, 1
       union all select 'ended', 'p0', $6::bigint + 1, 1
       union all select 'cold', 'c' || n, 6, 1 from generate_series(1, $4) n
       union all select 'q' || lpad(n::text, 5, '0'), p, 11, 1 from generate_series(1, $5) n, unnest('{a,b}'::text[]) p
     ) s join rouse.queues q on q.name = s.queue`,
    [size.hot, gone, size.loose, size.cold, size.queues, size.ended],
  )
  await client.query(
    `insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, payload)
     select p.id, s, gen_random_uuid(), now() - case when q.name = 'hot' then (p.head - s) * interval '2 days' / p.head else '0' end,
       case when q.name = 'hot' then 'k' || s end, '{"some": "payload"}'
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id, generate_series(1, p.head - 1) s`,
  )
  await client.query(
    `delete from rouse.messages m using rouse.partitions p where p.id = m.partition_id and p.name = 'p0' and m.seq < p.tail`,
  )
}

/**
 * The lanes of group g01 in queue `cold` are leased, blocked by a failed message, ready or empty, depending
 * on the partition number.
 */
async function fillLanes(client: pg.ClientBase, size: Size): Promise<void> {
  await client.query(
    `insert into rouse.lanes (partition_id, group_id, next, ready, lease_id, blocked_until)
     select p.id, g.id, s.next, s.next < p.head,
       case when s.state = 0 then gen_random_uuid() end, case when s.state = 1 then now() + interval '1 hour' end
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id join rouse.groups g on g.queue_id = q.id
     cross join lateral (
       select case when q.name = 'cold' and g.name = 'g01' then substr(p.name, 2)::integer % $2 end as state) n
     cross join lateral (
       select n.state, case
         when g.name = 'abandoned' then p.tail
         when q.name = 'hot' then p.head - $1::bigint / 100 + g.id % 10
         when q.name = 'loose' then p.head
         when q.name = 'ended' then 1
         when q.name = 'cold' then case when g.name = 'g03' then 1 else coalesce(('{2,2,3,6}'::integer[])[n.state + 1], 6) end
         when p.name = 'a' then 6 else 11 end as next) s`,
    [size.hot, coldStates],
  )
}

async function fillDeliveries(client: pg.ClientBase, size: Size): Promise<void> {
  await client.query(
    `insert into rouse.leases
     select l.lease_id, l.partition_id, l.group_id, 1, 1, B'1', 1, true, false, 'test', now(), now() + interval '1 hour'
     from rouse.lanes l where l.lease_id is not null`,
  )
  await client.query(
    `insert into rouse.leases
     select gen_random_uuid(), p.id, g.id, 10 * n + 1, 10 * n + 10, B'1111111111', 1, false, false, 'test', now(), now() + interval '1 hour'
     from rouse.queues q join rouse.partitions p on p.queue_id = q.id join rouse.groups g on g.queue_id = q.id,
       generate_series(0, $1 - 1) n where q.name = 'loose'`,
    [size.loose],
  )
  await client.query(
    `insert into rouse.redeliveries (partition_id, group_id, seq, attempt, alone, due_at, announced, error_code)
     select l.partition_id, l.group_id, 1, 1, false, l.blocked_until, false, 'code1' from rouse.lanes l where l.blocked_until is not null
     union all
     select p.id, g.id, p.head - $2 / 50 + n, 1, false, now() + interval '1 hour', n % 2 = 0, 'code1'
     from rouse.queues q join rouse.partitions p on p.queue_id = q.id join rouse.groups g on g.queue_id = q.id and g.name = 'g02',
       generate_series(1, $1) n where q.name = 'hot'`,
    [size.letters / 10, size.hot],
  )
  await client.query(
    `insert into rouse.dead_letters (queue_id, group_id, partition_id, seq, message_id, payload, attempts, error_code, created_at, failed_at)
     select q.id, g.id, p.id, case when q.name = 'hot' then s.seq * ($2::bigint / $1) else s.seq end, gen_random_uuid(), '{}', 4,
       'code' || s.seq % 5, now() - interval '13 days', now() - interval '12 days'
     from rouse.queues q join rouse.partitions p on p.queue_id = q.id join rouse.groups g on g.queue_id = q.id and g.name = 'g01',
       generate_series(1, case q.name when 'hot' then $1 when 'cold' then 1 when 'loose' then 0 when 'limited' then 0 when 'ended' then 0 else 1 end) s(seq)`,
    [size.letters, size.hot],
  )
  await client.query(
    `insert into rouse.attempts (partition_id, seq, group_id, attempt, outcome, error_code, holder, delivered_at, ended_at)
     select d.partition_id, d.seq, d.group_id, n, 'failed', d.error_code, 'test', d.failed_at, d.failed_at
     from rouse.dead_letters d, generate_series(1, 3) n`,
  )
}

async function fillRest(client: pg.ClientBase, size: Size): Promise<void> {
  await client.query(
    `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
     select q.name, p.name, now() + interval '1 day', gen_random_uuid(), '{}', 'broker', now()
     from rouse.queues q join rouse.partitions p on p.queue_id = q.id,
       generate_series(1, case q.name when 'hot' then $1 when 'q00070' then 10 when 'cold' then 1 else 0 end)`,
    [size.letters / 2],
  )
  await client.query(
    `with gone as (
       insert into rouse.message_options (partition_id, seq, cancelled_at)
       select p.id, s, now() from rouse.partitions p join rouse.queues q on q.id = p.queue_id, generate_series(1, p.head - 11) s
       where q.name = 'ended' returning partition_id)
     update rouse.partitions p set options_until = p.head where p.id in (select partition_id from gone)`,
  )
  await client.query(
    `insert into rouse.cancelled (id, queue, partition, due_at, payload, created_at, cancelled_at)
     select gen_random_uuid(), 'ended', 'p' || n % 2, now() + interval '1 day', '{}', now(), now() from generate_series(1, $1) n`,
    [size.ended],
  )
  // One key in ten has expired.
  await client.query(
    `insert into rouse.dedup (partition_id, key, message_id, seq, expires_at)
     select m.partition_id, m.transaction_id, m.id, m.seq, now() + case when m.seq % 10 = 0 then -1 else 1 end * interval '1 hour'
     from rouse.partitions p join rouse.messages m on m.partition_id = p.id and m.seq >= p.head - $1
     where m.transaction_id is not null`,
    [size.keys],
  )
  await client.query(
    `insert into rouse.traces (partition_id, transaction_id, names, data, created_at)
     select p.id, p.id || '-1', array['name' || row_number() over () % 100], '{}', now()
     from rouse.partitions p, generate_series(1, 10) where p.name <> 'p0' limit $1`,
    [size.traces],
  )
  await client.query(
    `insert into rouse.schedules (name, queue, cron, next_at, created_at)
     select 's' || lpad(n::text, 5, '0'), 'q00070', '* * * * *', now() + interval '1 day', now() from generate_series(1, $1) n`,
    [size.schedules],
  )
  await client.query(
    `insert into rouse.nodes (id, incarnation, last_seen_at, started_at)
     select 'node-' || n, n, now() - case when n > 3 then interval '30 days' else '0' end, now() from generate_series(1, 50) n`,
  )
}

async function leaveDeadRows(client: pg.ClientBase, size: Size): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    await client.query(
      `update rouse.lanes set ready = ready where group_id % 3 = 0 or lease_id is not null or blocked_until is not null`,
    )
    await client.query(`update rouse.partitions set head = head`)
    await client.query(`update rouse.leases set expires_at = expires_at + interval '1 millisecond'`)
    await client.query(`update rouse.groups set last_seen_at = last_seen_at`)
  }
  await client.query(
    `with gone as (
       insert into rouse.leases
       select gen_random_uuid(), 1, 1, 1, 1, B'1', 1, true, false, 'test', now(), now() - n * interval '1 second' from generate_series(1, $1) n)
     insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
     select 'q00070', 'a', now() - n * interval '1 second', gen_random_uuid(), '{}', 'broker', now() from generate_series(1, $1) n`,
    [size.dead],
  )
  await client.query(
    `insert into rouse.redeliveries (partition_id, group_id, seq, attempt, alone, due_at, announced)
     select p.id, 1, 10000000 + n, 1, false, now() - n * interval '1 second', false
     from rouse.partitions p, generate_series(1, $1) n where p.name = 'p0' order by p.id limit $1`,
    [size.dead],
  )
  await client.query(`delete from rouse.leases where expires_at < now()`)
  await client.query(`delete from rouse.scheduled where due_at < now()`)
  await client.query(`delete from rouse.redeliveries where due_at < now()`)
}
