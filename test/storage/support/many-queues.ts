import { configure } from '@rouse/storage'
import type pg from 'pg'

export interface ManyQueues {
  readonly queues: number
  readonly partitions: number
  readonly messages: number
  readonly leases: number
  readonly letters: number
}

const groups = ['g1', 'g2', 'g3']

/**
 * Creates queues q00001, q00002, … that have the same number of partitions, messages, leases and dead
 * letters, and the dead rows of active consumers.
 */
export async function fillManyQueues(client: pg.ClientBase, shape: ManyQueues): Promise<void> {
  await configure(client, { queue: 'template', options: {} })
  const { rows } = await client.query<{ columns: string }>(
    `select string_agg(column_name, ', ') as columns from information_schema.columns
     where table_schema = 'rouse' and table_name = 'queues' and is_generated = 'NEVER'
       and column_name not in ('id', 'name')`,
  )
  const columns = rows[0]?.columns
  await client.query(
    `insert into rouse.queues (name, ${columns})
     select 'q' || lpad(n::text, 5, '0'), ${columns} from rouse.queues, generate_series(1, $1) n where name = 'template'`,
    [shape.queues],
  )
  await client.query(`delete from rouse.queues where name = 'template'`)
  await client.query(
    `insert into rouse.groups (queue_id, name, created_at, last_seen_at)
     select q.id, g, now(), now() from rouse.queues q, unnest($1::text[]) g`,
    [groups],
  )
  const perPartition = Math.ceil(shape.messages / shape.partitions)
  await client.query(
    `insert into rouse.partitions (queue_id, name, head, tail, last_created_at)
     select (select min(id) from rouse.queues) + n % $1, 'p' || n, $3 + 1, 1, now() from generate_series(1, $2) n`,
    [shape.queues, shape.partitions, perPartition],
  )
  await client.query(
    `insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select p.id, s, gen_random_uuid(), now(), '{"some": "payload"}' from rouse.partitions p, generate_series(1, $1) s`,
    [perPartition],
  )
  await client.query(
    `insert into rouse.lanes (partition_id, group_id, next, ready)
     select p.id, g.id, 1 + (p.id % $1)::bigint, true from rouse.partitions p join rouse.groups g on g.queue_id = p.queue_id`,
    [perPartition],
  )
  await client.query(
    `insert into rouse.leases
     select gen_random_uuid(), l.partition_id, l.group_id, l.next, l.next, B'1', 1, true, false, 'test', now(), now() + interval '1 hour'
     from rouse.lanes l order by l.partition_id limit $1`,
    [shape.leases],
  )
  await client.query(
    `insert into rouse.dead_letters (queue_id, group_id, partition_id, seq, message_id, payload, attempts, error_code, created_at, failed_at)
     select p.queue_id, g.id, p.id, n, gen_random_uuid(), '{}', 4, 'code' || n % 5, now(), now()
     from (select * from rouse.partitions order by id limit 1) p
     join lateral (select * from rouse.groups g where g.queue_id = p.queue_id order by id limit 1) g on true, generate_series(1, $1) n`,
    [shape.letters],
  )
  for (let round = 0; round < 2; round += 1) {
    await client.query(`update rouse.leases set holder = holder || '.'`)
    await client.query('update rouse.lanes set ready = ready')
    await client.query('update rouse.partitions set head = head')
  }
}
