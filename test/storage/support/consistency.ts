// What must hold for the tables whenever no call is running, whatever calls ran before.
import type pg from 'pg'

/** A rule, and a query for the rows that break it: one text column. */
interface Rule {
  readonly name: string
  readonly offenders: string
}

const rules: readonly Rule[] = [
  {
    name: 'the log is dense from tail to head',
    offenders: `
      select format('partition %s: tail %s, head %s, %s messages from %s to %s', p.id, p.tail, p.head, m.count, m.first, m.last)
      from rouse.partitions p left join lateral (
        select count(*), min(m.seq) as first, max(m.seq) as last
        from rouse.messages m where m.partition_id = p.id and m.seq >= p.tail
      ) m on true
      where p.tail > p.head or m.count <> p.head - p.tail
        or (m.count > 0 and (m.first <> p.tail or m.last <> p.head - 1))`,
  },
  {
    name: 'creation times never fall within a partition',
    offenders: `
      select format('partition %s, seq %s', partition_id, seq)
      from (select partition_id, seq, created_at < lag(created_at) over (partition by partition_id order by seq) as fell
        from rouse.messages) m
      where fell`,
  },
  {
    name: 'every group has one lane on every partition of its queue, and none elsewhere that is not being removed',
    offenders: `
      select format('group %s, partition %s', coalesce(w.group_id, l.group_id), coalesce(w.partition_id, l.partition_id))
      from (select g.id as group_id, p.id as partition_id from rouse.groups g join rouse.partitions p using (queue_id)) w
      full join rouse.lanes l on l.group_id = w.group_id and l.partition_id = w.partition_id
      where l.group_id is null or (w.group_id is null
        and not exists (select from rouse.removals r where l.group_id = any (r.group_ids)))`,
  },
  {
    name: 'no lane is ahead of its log',
    offenders: `
      select format('lane (%s, %s): next %s, head %s', l.partition_id, l.group_id, l.next, p.head)
      from rouse.lanes l join rouse.partitions p on p.id = l.partition_id where l.next > p.head`,
  },
  {
    name: 'a lane with something to deliver is ready, leased or blocked',
    offenders: `
      select format('lane (%s, %s): next %s, head %s', l.partition_id, l.group_id, l.next, p.head)
      from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
      where not l.ready and l.lease_id is null and l.blocked_until is null
        and (greatest(l.next, p.tail) < p.head or exists (
          select from rouse.redeliveries r
          where r.partition_id = l.partition_id and r.group_id = l.group_id and r.announced))`,
  },
  {
    // This also holds for a leased or blocked lane: a call that frees the lane does not check `ready` again.
    name: 'a lane behind its log stays ready',
    offenders: `
      select format('lane (%s, %s): next %s, head %s', l.partition_id, l.group_id, l.next, p.head)
      from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
      where not l.ready and greatest(l.next, p.tail) < p.head`,
  },
  {
    name: 'a lane that is closed because it is full holds something, or ack_in ended it a moment ago',
    offenders: `
      select format('lane (%s, %s)', l.partition_id, l.group_id) from rouse.lanes l
      where l.blocked_until = 'infinity'
        and not exists (select from rouse.leases s
          where s.partition_id = l.partition_id and s.group_id = l.group_id and s.lane_limited)
        and not exists (select from rouse.freed f where f.partition_id = l.partition_id and f.group_id = l.group_id)`,
  },
  {
    name: "an ordered lane's lease exists, or was ended by ack_in a moment ago",
    offenders: `
      select format('lane (%s, %s): lease %s', l.partition_id, l.group_id, l.lease_id)
      from rouse.lanes l
      where l.lease_id is not null
        and not exists (select from rouse.leases s
          where s.id = l.lease_id and s.partition_id = l.partition_id and s.group_id = l.group_id and s.ordered)
        and not exists (select from rouse.freed f
          where f.lease_id = l.lease_id and f.partition_id = l.partition_id and f.group_id = l.group_id)`,
  },
  {
    name: 'an ordered lease is the one its lane names',
    offenders: `
      select format('lease %s of lane (%s, %s)', s.id, s.partition_id, s.group_id)
      from rouse.leases s
      where s.ordered and not exists (select from rouse.lanes l
        where l.partition_id = s.partition_id and l.group_id = s.group_id and l.lease_id = s.id)`,
  },
  {
    name: 'a lease without order has a lane, which does not name it',
    offenders: `
      select format('lease %s of lane (%s, %s)', s.id, s.partition_id, s.group_id)
      from rouse.leases s left join rouse.lanes l on l.partition_id = s.partition_id and l.group_id = s.group_id
      where not s.ordered and (l.group_id is null or l.lease_id = s.id)`,
  },
  {
    name: 'a lease holds something, and a bit for every seq of its range',
    offenders: `
      select format('lease %s, partition %s: %s to %s, %s', id, partition_id, from_seq, to_seq, unacked)
      from rouse.leases where bit_count(unacked) = 0 or length(unacked) <> to_seq - from_seq + 1`,
  },
  {
    name: 'what is held was delivered: it lies below next',
    offenders: `
      select format('partition %s, group %s, seq %s of lease %s', h.partition_id, h.group_id, h.seq, h.lease_id)
      from (${held()}) h join rouse.lanes l on l.partition_id = h.partition_id and l.group_id = h.group_id
      where h.seq >= l.next`,
  },
  {
    name: 'a message is held once at most in a group',
    offenders: `
      select format('partition %s, group %s, seq %s', partition_id, group_id, seq)
      from (${held()}) h group by partition_id, group_id, seq having count(*) > 1`,
  },
  {
    name: 'a message that is to be delivered again is not held',
    offenders: `
      select format('partition %s, group %s, seq %s of lease %s', h.partition_id, h.group_id, h.seq, h.lease_id)
      from (${held()}) h join rouse.redeliveries r using (partition_id, group_id, seq)`,
  },
  {
    name: 'what is to be delivered again lies below next',
    offenders: `
      select format('partition %s, group %s, seq %s', r.partition_id, r.group_id, r.seq)
      from rouse.redeliveries r left join rouse.lanes l on l.partition_id = r.partition_id and l.group_id = r.group_id
      where l.next is null or r.seq >= l.next`,
  },
  {
    name: 'retention takes nothing that is held or to be delivered again',
    offenders: `
      select format('partition %s, group %s, seq %s', h.partition_id, h.group_id, h.seq)
      from (select partition_id, group_id, seq from (${held()}) b
        union all select partition_id, group_id, seq from rouse.redeliveries) h
      left join rouse.messages m on m.partition_id = h.partition_id and m.seq = h.seq
      where m.seq is null`,
  },
]

/** Returns every broken rule with the first rows that break it. */
export async function inconsistencies(executor: pg.Pool | pg.Client): Promise<string[]> {
  const found: string[] = []
  for (const { name, offenders } of rules) {
    const { rows } = await executor.query<[string]>({
      text: `${offenders} limit 5`,
      rowMode: 'array',
    })
    found.push(...rows.map(([offender]) => `${name}, but ${offender}`))
  }
  return found
}

/** One row per message that a lease holds. */
function held(): string {
  return `
    select s.id as lease_id, s.partition_id, s.group_id, s.from_seq + i as seq
    from rouse.leases s cross join lateral generate_series(0, length(s.unacked) - 1) i
    where get_bit(s.unacked, i) = 1`
}
