-- Stats of queues and groups. The depth of a lane is head minus next, so pushes and pops maintain no
-- counters.

-- Stats of one queue or of all; nodes call stats_page.
-- Parameters: queue (null: all). Result: as stats_of. Locks: none.
create or replace function rouse.stats(p_queue text default null)
returns table (
  queue text, namespace text, task text, paused boolean, partitions bigint, messages bigint, scheduled bigint,
  consumer_group text, pending bigint, in_flight bigint, redeliveries bigint, blocked_lanes bigint, leased_lanes bigint,
  dead bigint, oldest_pending_at timestamptz, last_seen_at timestamptz
)
language sql stable
as $$
  select * from rouse.stats_of(array(select q.id from rouse.queues q where p_queue is null or q.name = p_queue))
$$;

-- Stats of a page of queues, by name.
-- Parameters: the name after which the page begins (null: at the first), the maximum number of queues.
-- Result: as stats_of. Locks: none.
create or replace function rouse.stats_page(p_after text, p_limit integer)
returns table (
  queue text, namespace text, task text, paused boolean, partitions bigint, messages bigint, scheduled bigint,
  consumer_group text, pending bigint, in_flight bigint, redeliveries bigint, blocked_lanes bigint, leased_lanes bigint,
  dead bigint, oldest_pending_at timestamptz, last_seen_at timestamptz
)
language sql stable
as $$
  select * from rouse.stats_of(array(
    select q.id from rouse.queues q where p_after is null or q.name > p_after order by q.name limit p_limit))
$$;

-- Stats of these queues. Each table is read once for all these queues. Leases are read completely, because an
-- index by group would slow down every pop. The other tables are read by index.
-- Parameters: the queue ids.
-- Result: one row per queue and group, or one row without a group for a queue that has none. Locks: none.
create or replace function rouse.stats_of(p_queue_ids integer[])
returns table (
  queue text, namespace text, task text, paused boolean, partitions bigint, messages bigint, scheduled bigint,
  consumer_group text, pending bigint, in_flight bigint, redeliveries bigint, blocked_lanes bigint, leased_lanes bigint,
  dead bigint, oldest_pending_at timestamptz, last_seen_at timestamptz
)
language plpgsql stable
-- With custom plans the planner knows the number of queues, and reads small pages by index.
set plan_cache_mode = force_custom_plan set jit = off
as $$
#variable_conflict use_column
declare
  -- A value instead of a join, so that the planner knows whether these queues have many scheduled messages.
  v_names constant text[] := array(select q.name from rouse.queues q where q.id = any (p_queue_ids));
begin
  return query
  with partitions_of as materialized (
    select p.id, p.queue_id, p.name, p.head, p.tail, p.options_until from rouse.partitions p where p.queue_id = any (p_queue_ids)
  ), logs as (
    select p.queue_id, count(rouse.shown_partition(p.name)) as partitions, sum(p.head - p.tail
        - case when p.options_until > p.tail then rouse.excluded_count(p.id, p.tail) else 0 end)::bigint as messages
    from partitions_of p group by p.queue_id
  ), lanes_of as (
    select l.group_id, sum(p.head - greatest(l.next, p.tail)
        - case when p.options_until > greatest(l.next, p.tail) then rouse.excluded_count(p.id, greatest(l.next, p.tail)) else 0 end)::bigint as pending,
      count(*) filter (where l.blocked_until is not null) as blocked, count(*) filter (where l.lease_id is not null) as leased,
      min(case when p.head > greatest(l.next, p.tail) then (select m.created_at from rouse.messages m
        where m.partition_id = p.id and m.seq = greatest(l.next, p.tail)) end) as oldest
    from partitions_of p join rouse.lanes l on l.partition_id = p.id
    group by l.group_id
  ), groups_of as materialized (
    select g.* from rouse.groups g where g.queue_id = any (p_queue_ids)
  ), leases_of as (
    select s.group_id, sum(bit_count(s.unacked))::bigint as held from rouse.leases s
    where s.group_id in (select g.id from groups_of g) group by s.group_id
  ), redeliveries_of as (
    select r.group_id, count(*) as count
    from rouse.redeliveries r join partitions_of p on p.id = r.partition_id group by r.group_id
  ), scheduled_of as (
    select s.queue, count(*) as count from rouse.scheduled s
    where s.queue = any (v_names) group by s.queue
  ), letters_of as (
    select d.group_id, count(*) as count from rouse.dead_letters d where d.queue_id = any (p_queue_ids) group by d.group_id
  )
  select q.name, q.namespace, q.task, q.paused, coalesce(p.partitions, 0), coalesce(p.messages, 0),
    coalesce(w.count, 0),
    g.name, coalesce(l.pending, 0), coalesce(s.held, 0), coalesce(r.count, 0), coalesce(l.blocked, 0), coalesce(l.leased, 0),
    coalesce(d.count, 0), l.oldest, g.last_seen_at
  from rouse.queues q
  left join logs p on p.queue_id = q.id
  left join groups_of g on g.queue_id = q.id
  left join lanes_of l on l.group_id = g.id
  left join leases_of s on s.group_id = g.id
  left join redeliveries_of r on r.group_id = g.id
  left join letters_of d on d.group_id = g.id
  left join scheduled_of w on w.queue = q.name
  where q.id = any (p_queue_ids)
  order by q.name, g.name;
end $$;

-- The number of messages in a partition, from a seq on, that were cancelled or have expired. They are not
-- delivered, so they are not pending.
-- Parameters: the partition, the seq. Result: the count. Locks: none.
create or replace function rouse.excluded_count(p_partition_id bigint, p_from bigint) returns bigint
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return (select count(*) from rouse.message_options o
    where o.partition_id = p_partition_id and o.seq >= p_from and (o.cancelled_at is not null or o.expires_at <= rouse.now()));
end $$;

-- The number of messages in a partition, from a seq on, whose ttlMs has passed.
-- Parameters: the partition, the seq. Result: the count. Locks: none.
create or replace function rouse.expired_count(p_partition_id bigint, p_from bigint) returns bigint
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return (select count(*) from rouse.message_options o
    where o.partition_id = p_partition_id and o.seq >= p_from and o.cancelled_at is null and o.expires_at <= rouse.now());
end $$;
