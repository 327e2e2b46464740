// Fills the tables directly, to any size, with the rows that earlier pushes and pops would have left.
import { configure, type Executor, pop } from '@rouse/storage'
import type pg from 'pg'

export interface Shape {
  /** The number of partitions of queue `wide`. One of their lanes is ready. */
  readonly partitions: number
  /** The number of messages in the one partition of queue `deep`. Half of them are consumed. */
  readonly backlog: number
  /**
   * The number of blocked lanes of queue `stuck`; it has as many leased lanes, and one ready lane. As many
   * independent messages of queue `retrying` wait for their retry.
   */
  readonly stuck: number
}

export const group = 'g'
const messagesReady = 100

export async function fillTables(client: pg.ClientBase, shape: Shape): Promise<void> {
  await fillQueue(client, 'wide', shape.partitions)
  await fillQueue(client, 'deep', 1)
  await fillQueue(client, 'stuck', shape.stuck * 2 + 1)
  await openLane(client, 'wide', Math.ceil(shape.partitions / 2), messagesReady, 0)
  await openLane(client, 'deep', 1, shape.backlog, shape.backlog / 2)
  await openLane(client, 'stuck', shape.stuck + 1, messagesReady, 0)
  await fillRetrying(client, shape.stuck)
}

async function fillRetrying(client: pg.ClientBase, waiting: number): Promise<void> {
  await configure(client, { queue: 'retrying', options: {} })
  await subscribe(client, 'retrying')
  await client.query(
    `with place as (
       insert into rouse.partitions (queue_id, name, head, last_created_at)
       select q.id, rouse.independent_partition(), $1::int + $2::int + 1, now() from rouse.queues q where q.name = 'retrying'
       returning id, queue_id
     ), written as (
       insert into rouse.messages (partition_id, seq, id, created_at, payload)
       select p.id, n, gen_random_uuid(), now(), '{}' from place p, generate_series(1, $1::int + $2::int) n
     ), lane as (
       insert into rouse.lanes (partition_id, group_id, next, ready)
       select p.id, g.id, $1::int + 1, true from place p join rouse.groups g on g.queue_id = p.queue_id
     )
     insert into rouse.redeliveries
     select p.id, g.id, n, 1, false, now() + interval '1 hour', false
     from place p join rouse.groups g on g.queue_id = p.queue_id, generate_series(1, $1::int) n`,
    [waiting, messagesReady],
  )
}

/** Creates partitions p1, p2, … with one message each: consumed, or in queue `stuck` failed or leased. */
async function fillQueue(client: pg.ClientBase, queue: string, partitions: number): Promise<void> {
  await configure(client, { queue, options: {} })
  await subscribe(client, queue)
  await client.query(
    `insert into rouse.partitions (queue_id, name, head, last_created_at)
     select q.id, 'p' || n, 2, now() from rouse.queues q, generate_series(1, $2) n where q.name = $1
     order by n`,
    [queue, partitions],
  )
  await client.query(
    `insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select p.id, 1, gen_random_uuid(), now(), '{}'
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = $1 order by p.id`,
    [queue],
  )
  // Lanes of even partitions are blocked, the others leased.
  await client.query(
    `insert into rouse.lanes (partition_id, group_id, next, ready, blocked_until, lease_id)
     select p.id, g.id, 2, q.name = 'stuck',
       case when q.name = 'stuck' and p.id % 2 = 0 then now() + interval '1 hour' end,
       case when q.name = 'stuck' and p.id % 2 = 1 then gen_random_uuid() end
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id join rouse.groups g on g.queue_id = q.id
     where q.name = $1 order by p.id`,
    [queue],
  )
  await client.query(
    `insert into rouse.leases
     select l.lease_id, l.partition_id, l.group_id, 1, 1, B'1', 1, true, false, 'test', now(), now() + interval '1 hour'
     from rouse.lanes l join rouse.groups g on g.id = l.group_id join rouse.queues q on q.id = g.queue_id
     where q.name = $1 and l.lease_id is not null`,
    [queue],
  )
  await client.query(
    `insert into rouse.redeliveries
     select l.partition_id, l.group_id, 1, 1, false, l.blocked_until, false
     from rouse.lanes l join rouse.groups g on g.id = l.group_id join rouse.queues q on q.id = g.queue_id
     where q.name = $1 and l.blocked_until is not null`,
    [queue],
  )
}

async function subscribe(executor: Executor, queue: string): Promise<void> {
  const demands = [{ batch: 1, partitions: 1, holder: 'test' }]
  await pop(executor, { source: { queue }, group, demands })
}

/** Makes one lane ready and adds messages to its partition, of which the first ones are consumed. */
async function openLane(
  client: pg.ClientBase,
  queue: string,
  partition: number,
  messages: number,
  consumed: number,
): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `update rouse.partitions p set head = 2 + $3
     from rouse.queues q where q.id = p.queue_id and q.name = $1 and p.name = 'p' || $2
     returning p.id`,
    [queue, partition, messages],
  )
  const id = rows[0]?.id
  await client.query('delete from rouse.leases where partition_id = $1', [id])
  await client.query('delete from rouse.redeliveries where partition_id = $1', [id])
  await client.query(
    `update rouse.lanes set next = 2 + $2, ready = true, blocked_until = null, lease_id = null
     where partition_id = $1`,
    [id, consumed],
  )
  await client.query(
    `insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select $1, 1 + n, gen_random_uuid(), now(), '{"some": "payload"}' from generate_series(1, $2) n`,
    [id, messages],
  )
}
