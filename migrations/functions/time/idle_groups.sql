-- Idle consumer groups and the messages that they retain. A group is idle after a day without a request (a
-- pop updates last_seen_at). A group that has a lease, or whose queue is paused, is not idle. If a group has
-- been idle for longer than the limit and another group of the queue is in use, the idle group stops
-- retaining messages: those that all other groups have completed may then be removed. let_go_at records when
-- the idle group stopped.

-- Updates rouse.idle_groups: which groups are idle, which of them stop retaining messages, and how many
-- messages they retain. Counting the messages has a time budget.
-- Parameters: the idle time in ms after which a group stops retaining messages (null: never); how long no
--   node ran before this call.
-- Result: nothing. Locks: rows of idle_groups. Nodes call it only while they hold the row `retention` of
--   rouse.chores.
create or replace function rouse.watch_idle_groups(p_idle_group_ms bigint, p_down interval) returns void
language plpgsql
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_ends constant timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_named_after constant interval := least(interval '1 day', p_idle_group_ms * interval '1 millisecond');
  v_measured_for constant interval := interval '10 minutes';
  v_groups_max constant integer := 1000;
  v_group_id integer;
begin
  -- A group is no longer idle if it made a request, was deleted, has a lease, or its queue is paused.
  delete from rouse.idle_groups i
  where not exists (
    select from rouse.groups g join rouse.queues q on q.id = g.queue_id
    where g.id = i.group_id and g.last_seen_at <= i.since and not q.paused
      and not exists (select from rouse.leases s where s.group_id = g.id and s.expires_at > v_now));
  if p_down > interval '0' then
    update rouse.idle_groups i set since = least(i.since + p_down, v_now) where i.let_go_at is null;
  end if;
  -- A newly found group counts as idle for at most a day: whether it was used while no node was running is
  -- unknown.
  insert into rouse.idle_groups (group_id, since)
  select g.id, greatest(g.last_seen_at, v_now - v_named_after)
  from rouse.groups g join rouse.queues q on q.id = g.queue_id and not q.paused
  where g.last_seen_at <= v_now - v_named_after
    and g.id not in (select s.group_id from rouse.leases s where s.expires_at > v_now)
    and not exists (select from rouse.idle_groups i where i.group_id = g.id)
  order by g.last_seen_at
  limit v_groups_max
  on conflict (group_id) do nothing;
  if p_idle_group_ms is not null then
    update rouse.idle_groups i set let_go_at = v_now
    from rouse.groups g
    where g.id = i.group_id and i.let_go_at is null and i.since <= v_now - p_idle_group_ms * interval '1 millisecond'
      and exists (
        select from rouse.groups o
        where o.queue_id = g.queue_id and not exists (select from rouse.idle_groups n where n.group_id = o.id and n.let_go_at is not null)
          and o.last_seen_at > v_now - p_idle_group_ms * interval '1 millisecond');
  else
    update rouse.idle_groups i set let_go_at = null, warned_at = null where i.let_go_at is not null;
  end if;
  for v_group_id in
    select i.group_id from rouse.idle_groups i
    where i.measured_at is null or i.measured_at <= v_now - v_measured_for
    order by i.measured_at nulls first
  loop
    perform rouse.measure_idle_group(v_group_id, v_now);
    exit when clock_timestamp() > v_ends;
  end loop;
end $$;

-- Counts the messages that an idle group has not completed.
-- Parameters: the group, the time now. Result: nothing. Locks: its row of idle_groups.
create or replace function rouse.measure_idle_group(p_group_id integer, p_now timestamptz) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_partitions_max constant integer := 5000;
begin
  update rouse.idle_groups i
  set messages = k.messages, oldest_at = k.oldest_at, is_partial = k.partitions >= v_partitions_max, measured_at = p_now
  from (
    select coalesce(sum(greatest(p.head - l.next, 0) + r.count), 0) as messages, min(m.created_at) as oldest_at, count(*) as partitions
    from (
      select p.id, p.head, p.tail from rouse.groups g join rouse.partitions p on p.queue_id = g.queue_id
      where g.id = p_group_id order by p.id limit v_partitions_max
    ) p
    cross join lateral (
      select greatest(max(o.next), p.tail) as next from rouse.lanes o where o.partition_id = p.id and o.group_id = p_group_id
    ) l
    cross join lateral (
      select count(*) as count, min(o.seq) as first from rouse.redeliveries o where o.partition_id = p.id and o.group_id = p_group_id
    ) r
    left join lateral (
      select o.created_at from rouse.messages o where o.partition_id = p.id and o.seq = least(r.first, l.next) limit 1 offset 0
    ) m on true
  ) k
  where i.group_id = p_group_id;
end $$;

-- Idle groups that retain messages, or did before they stopped, most messages first.
-- Parameters: the maximum number of groups; the limit as in watch_idle_groups.
-- Result: one row per group: its last request; the messages it retains; until when it retains them (null:
--   permanently); when it stopped. After the time in `until`, a group retains its messages only if no other
--   group of its queue is in use.
-- Locks: none.
create or replace function rouse.idle_groups(p_limit integer, p_idle_group_ms bigint)
returns table (
  queue text, consumer_group text, last_seen_at timestamptz, messages bigint, is_partial boolean, oldest_at timestamptz,
  until timestamptz, let_go_at timestamptz
)
language plpgsql stable
as $$
begin
  return query
  select q.name, g.name, g.last_seen_at, i.messages, i.is_partial, i.oldest_at,
    i.since + p_idle_group_ms * interval '1 millisecond', i.let_go_at
  from rouse.idle_groups i join rouse.groups g on g.id = i.group_id join rouse.queues q on q.id = g.queue_id
  where i.messages > 0 and g.last_seen_at <= i.since
  order by i.messages desc, g.id
  limit p_limit;
end $$;

-- The groups that stopped retaining messages and were not reported yet. Each is returned once per idle
-- period, to one node.
-- Parameters: the maximum number of groups. Result: one row per group. Locks: their rows, with SKIP LOCKED.
create or replace function rouse.warn_idle_groups(p_limit integer)
returns table (queue text, consumer_group text, last_seen_at timestamptz, messages bigint)
language plpgsql
as $$
begin
  return query
  update rouse.idle_groups i set warned_at = rouse.now()
  from rouse.groups g join rouse.queues q on q.id = g.queue_id
  where g.id = i.group_id and i.group_id = any (array(
    select o.group_id from rouse.idle_groups o where o.let_go_at is not null and o.warned_at is null
    order by o.group_id limit p_limit for update skip locked))
  returning q.name, g.name, g.last_seen_at, i.messages;
end $$;

-- The groups that have stopped retaining messages.
-- Parameters: the queue (null: all). Result: group ids. Locks: none.
create or replace function rouse.let_go_groups(p_queue_id integer) returns integer[]
language plpgsql stable
as $$
begin
  return array(
    select i.group_id from rouse.idle_groups i join rouse.groups g on g.id = i.group_id
    where i.let_go_at is not null and g.last_seen_at <= i.let_go_at and (p_queue_id is null or g.queue_id = p_queue_id));
end $$;

-- Marks groups as in use without a pop: after a redrive or a seek, the operator expects a consumer.
-- Parameters: group ids. Result: nothing. Locks: those groups, with SKIP LOCKED: a locked one is in use.
create or replace function rouse.see_groups(p_ids integer[]) returns void
language plpgsql
as $$
begin
  update rouse.groups u set last_seen_at = rouse.now()
  where u.id = any (array(select g.id from rouse.groups g where g.id = any (p_ids) order by g.id for no key update skip locked))
    and u.last_seen_at < rouse.now() - interval '1 minute';
end $$;
