-- What operators see of these queues, one row per queue.
-- Parameters: the queue ids.
-- Result: `ready` are the messages not yet delivered: to the group that is furthest behind, or all that are
--   kept if there is no group. `leased`, `retrying` and `dead` are sums over the groups. `pops` are the pops
--   whose messages are held. `oldest_at` is the creation of the oldest message not yet delivered. If lanes
--   are held by a failed message: when the last of them is free again, and its error.
-- Locks: none.
create or replace function rouse.queue_figures(p_queue_ids integer[])
returns table (
  queue text, namespace text, task text, paused boolean, created_at timestamptz, ready bigint, leased bigint, retrying bigint,
  scheduled bigint, dead bigint, pops bigint, oldest_at timestamptz, held_until timestamptz, held_error text
)
language plpgsql stable
set plan_cache_mode = force_custom_plan set jit = off
as $$
#variable_conflict use_column
begin
  -- barrier: figures-begun
  return query
  with figures as (
    select s.queue, max(s.messages) as messages, max(s.scheduled) as scheduled, max(s.pending) as pending,
      sum(s.in_flight)::bigint as in_flight, sum(s.redeliveries)::bigint as redeliveries, sum(s.dead)::bigint as dead,
      sum(s.blocked_lanes) as blocked, min(s.oldest_pending_at) as oldest, bool_or(s.consumer_group is not null) as has_groups
    from rouse.stats_of(p_queue_ids) s group by s.queue
  ), pops_of as (
    select g.queue_id, count(distinct s.id) as pops
    from rouse.leases s join rouse.groups g on g.id = s.group_id where g.queue_id = any (p_queue_ids) group by g.queue_id
  )
  select q.name, q.namespace, q.task, q.paused, q.created_at, case when f.has_groups then f.pending else f.messages end,
    f.in_flight, f.redeliveries, f.scheduled, f.dead, coalesce(p.pops, 0),
    case when f.has_groups then f.oldest when f.messages > 0 then rouse.oldest_kept(q.id) end,
    h.until, h.error
  from figures f
  join rouse.queues q on q.name = f.queue
  left join pops_of p on p.queue_id = q.id
  left join lateral (
    select l.blocked_until as until, r.error_message as error
    from rouse.partitions o
    join rouse.lanes l on l.partition_id = o.id
    join rouse.redeliveries r on r.partition_id = l.partition_id and r.group_id = l.group_id
    where f.blocked > 0 and q.on_failure = 'hold' and o.queue_id = q.id and l.blocked_until < 'infinity'
    order by l.blocked_until desc, r.seq limit 1
  ) h on true
  order by q.name;
end $$;

-- When the oldest message was created that a queue keeps.
-- Parameters: the queue's id. Result: a time, null if it keeps none. Locks: none.
create or replace function rouse.oldest_kept(p_queue_id integer) returns timestamptz
language sql stable
as $$
  select min(m.created_at) from rouse.partitions p
  join rouse.messages m on m.partition_id = p.id and m.seq = p.tail
  where p.queue_id = p_queue_id and p.head > p.tail
$$;
