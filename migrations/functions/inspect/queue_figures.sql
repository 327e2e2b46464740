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
  ), kept_of as (
    -- Only of queues without a group: the others have the oldest message of their groups.
    select p.queue_id, min(m.created_at) as oldest
    from (
      select o.id, o.queue_id, o.tail from figures f
      join rouse.queues q on q.name = f.queue
      join rouse.partitions o on o.queue_id = q.id
      where not f.has_groups and f.messages > 0 and o.head > o.tail
      offset 0
    ) p
    cross join lateral (select x.created_at from rouse.messages x where x.partition_id = p.id and x.seq = p.tail offset 0) m
    group by p.queue_id
  )
  select q.name, q.namespace, q.task, q.paused, q.created_at, case when f.has_groups then f.pending else f.messages end,
    f.in_flight, f.redeliveries, f.scheduled, f.dead, coalesce(p.pops, 0),
    case when f.has_groups then f.oldest else k.oldest end,
    h.until, h.error
  from figures f
  join rouse.queues q on q.name = f.queue
  left join pops_of p on p.queue_id = q.id
  left join kept_of k on k.queue_id = q.id
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
