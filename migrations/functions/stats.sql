-- What each queue and group holds. Depth is head minus next: nothing is counted on the hot path.
-- Parameters: queue (null: all).
-- Result: a row a group, or one row without a group for a queue that has none.
-- Locks: none.
create or replace function rouse.stats(p_queue text default null)
returns table (
  queue text, namespace text, task text, paused boolean, partitions bigint, messages bigint, scheduled bigint,
  consumer_group text, pending bigint, in_flight bigint, redeliveries bigint, blocked_lanes bigint, leased_lanes bigint,
  dead bigint, oldest_pending_at timestamptz, last_seen_at timestamptz
)
language sql stable
as $$
  select q.name, q.namespace, q.task, q.paused,
    (select count(*) from rouse.partitions p where p.queue_id = q.id),
    (select coalesce(sum(p.head - p.tail), 0)::bigint from rouse.partitions p where p.queue_id = q.id),
    (select count(*) from rouse.scheduled s where s.queue = q.name),
    g.name, coalesce(l.pending, 0)::bigint,
    (select coalesce(sum(bit_count(s.unacked)), 0)::bigint from rouse.leases s where s.group_id = g.id),
    (select count(*) from rouse.partitions p join rouse.redeliveries r on r.partition_id = p.id and r.group_id = g.id where p.queue_id = q.id),
    coalesce(l.blocked, 0), coalesce(l.leased, 0),
    (select count(*) from rouse.dead_letters d where d.queue_id = q.id and d.group_id = g.id),
    l.oldest, g.last_seen_at
  from rouse.queues q
  left join rouse.groups g on g.queue_id = q.id
  left join lateral (
    select sum(p.head - greatest(l.next, p.tail)) as pending,
      count(*) filter (where l.blocked_until is not null) as blocked, count(*) filter (where l.lease_id is not null) as leased,
      min((select m.created_at from rouse.messages m where m.partition_id = p.id and m.seq = greatest(l.next, p.tail))) as oldest
    from rouse.partitions p join rouse.lanes l on l.partition_id = p.id and l.group_id = g.id
    where p.queue_id = q.id
  ) l on true
  where p_queue is null or q.name = p_queue
  order by q.name, g.name
$$;
