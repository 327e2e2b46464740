// Reads the tables: what is left to consume while the groups drain, and what is left over after that.
import type pg from 'pg'
import { inconsistencies } from '../../storage/support/consistency.ts'
import type { AuditRecord } from '../history/records.ts'

export interface Leftovers {
  readonly groups: AuditRecord['undrained']
  /** The number of leases, of living and of dead consumers. */
  readonly leases: number
  /**
   * The number of messages that have not reached a log yet, plus the number of lanes that `ack_in` freed and
   * that have not been opened again.
   */
  readonly scheduled: number
}

export function leftCount({ groups, leases, scheduled }: Leftovers): number {
  return leases + scheduled + groups.reduce((sum, { left }) => sum + left, 0)
}

export async function leftovers(pool: pg.Pool): Promise<Leftovers> {
  const groups = await pool.query<Leftovers['groups'][number]>(
    `select queue, "group", left_over::integer as left from (
       select q.name as queue, g.name as "group",
         sum(greatest(p.head - greatest(l.next, p.tail), 0))
           + (select count(*) from rouse.redeliveries r where r.group_id = g.id) as left_over
       from rouse.groups g
       join rouse.queues q on q.id = g.queue_id
       join rouse.lanes l on l.group_id = g.id
       join rouse.partitions p on p.id = l.partition_id
       group by q.name, g.name, g.id) counted
     where left_over > 0`,
  )
  const counts = await pool.query<{ leases: number; scheduled: number }>(
    `select (select count(*) from rouse.leases)::integer as leases,
       ((select count(*) from rouse.scheduled) + (select count(*) from rouse.freed))::integer as scheduled`,
  )
  const [{ leases, scheduled } = { leases: 0, scheduled: 0 }] = counts.rows
  return { groups: groups.rows, leases, scheduled }
}

export async function audit(pool: pg.Pool): Promise<AuditRecord> {
  const { groups, leases, scheduled } = await leftovers(pool)
  const dead = await pool.query<AuditRecord['deadLetters'][number]>(
    `select q.name as queue, g.name as "group", d.payload::json ->> 'v' as value, d.attempts
     from rouse.dead_letters d
     join rouse.queues q on q.id = d.queue_id
     join rouse.groups g on g.id = d.group_id
     order by d.id`,
  )
  const moved = await pool.query<AuditRecord['deadLetters'][number]>(
    `select h.letter ->> 'queue' as queue, m.payload::json ->> 'v' as value, (h.letter ->> 'attempts')::integer as attempts,
       case h.letter ->> 'consumerGroup' when 'default' then '__QUEUE_MODE__' else h.letter ->> 'consumerGroup' end as "group"
     from rouse.messages m
     cross join lateral (select m.headers::json -> 'rouse-dead-letter' as letter) h
     where m.headers like '%rouse-dead-letter%'
     order by m.partition_id, m.seq`,
  )
  const without = await pool.query<{ value: string }>(
    `select q.name || ': ' || (m.payload::json ->> 'v') as value
     from rouse.queues q
     join rouse.partitions p on p.queue_id = q.id
     join rouse.messages m on m.partition_id = p.id
     where q.full_history and not exists (
       select from rouse.results r
       where r.partition_id = m.partition_id and r.seq = m.seq and r.result::json ->> 'v' = m.payload::json ->> 'v')
     order by m.partition_id, m.seq`,
  )
  return {
    kind: 'audit',
    undrained: groups,
    leases,
    scheduled,
    deadLetters: [...dead.rows, ...moved.rows],
    contradictions: await inconsistencies(pool),
    withoutResult: without.rows.map(({ value }) => value),
  }
}
