-- Opens groups and lanes whose block has ended, and lanes that ack_in freed, and sets `announced` on
-- redeliveries that are due.
-- Parameters: the maximum number of rows of each kind. Result: wake hints.
-- Locks: groups, then lanes by (partition, group), all with SKIP LOCKED.
create or replace function rouse.promote_ready(p_limit integer)
returns setof rouse.wake_hint
language plpgsql
set lock_timeout = '250ms'  -- SKIP LOCKED can wait in one race: see pop_general
as $$
begin
  perform rouse.raise_durability();
  return query select * from rouse.promote_groups(p_limit);
  return query select * from rouse.promote_lanes(p_limit);
  return query select * from rouse.promote_freed(p_limit);
end $$;

-- Ends the blocks of groups whose rate permits messages again.
-- Parameters: the maximum number of rows. Result: wake hints without a partition.
-- Locks: those groups, with SKIP LOCKED. A pop that holds one decides about its block.
create or replace function rouse.promote_groups(p_limit integer)
returns setof rouse.wake_hint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_ids integer[];
begin
  v_ids := array(
    select g.id from rouse.groups g where g.blocked_until <= v_now order by g.blocked_until limit p_limit for no key update skip locked);
  if cardinality(v_ids) = 0 then
    return;
  end if;
  -- barrier: promote-groups-locked
  return query
  with opened as (
    update rouse.groups g set blocked_until = null where g.id = any (v_ids) returning g.name, g.queue_id
  )
  select q.name, null::text, o.name, q.namespace, q.task, null::bigint from opened o join rouse.queues q on q.id = o.queue_id;
end $$;

-- Opens lanes whose block has ended, and sets `announced` on redeliveries that are due.
-- Parameters: the maximum number of rows of each kind. Result: wake hints.
-- Locks: those lanes by (partition, group), with SKIP LOCKED.
create or replace function rouse.promote_lanes(p_limit integer)
returns setof rouse.wake_hint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now timestamptz := rouse.now();
  v_due record;
  v_lanes record;
begin
  select array_agg(d.partition_id) as partitions, array_agg(d.group_id) as groups, array_agg(d.seq) as seqs into v_due
  from (
    (select l.partition_id, l.group_id, null::bigint as seq from rouse.lanes l
     where l.blocked_until <= v_now order by l.blocked_until limit p_limit)
    union all
    (select r.partition_id, r.group_id, r.seq from rouse.redeliveries r
     where not r.announced and r.due_at <= v_now order by r.due_at limit p_limit)
  ) d;
  if v_due.partitions is null then
    return;
  end if;
  select array_agg(l.partition_id) as partitions, array_agg(l.group_id) as groups into v_lanes
  from (
    select l.partition_id, l.group_id from rouse.lanes l
    where l.partition_id = any (v_due.partitions) and l.group_id = any (v_due.groups)
      and exists (select from unnest(v_due.partitions, v_due.groups) t(p, g) where t.p = l.partition_id and t.g = l.group_id)
    order by l.partition_id, l.group_id
    for no key update skip locked
  ) l;
  -- barrier: promote-lanes-locked
  -- Updates only the redeliveries found above, by key: a lane may have any number of others.
  update rouse.redeliveries r set announced = true
  from unnest(v_due.partitions, v_due.groups, v_due.seqs) t(p, g, s)
  where r.partition_id = t.p and r.group_id = t.g and r.seq = t.s and not r.announced and r.due_at <= v_now
    and exists (select from unnest(v_lanes.partitions, v_lanes.groups) l(p, g) where l.p = r.partition_id and l.g = r.group_id);
  return query
  with opened as (
    update rouse.lanes l
    set ready = true, blocked_until = null  -- a due message may be delivered before the one that the lane waits for
    where l.partition_id = any (v_lanes.partitions) and l.group_id = any (v_lanes.groups)
      and exists (select from unnest(v_lanes.partitions, v_lanes.groups) t(p, g) where t.p = l.partition_id and t.g = l.group_id)
    returning l.partition_id, l.group_id, l.next
  )
  select q.name, p.name, g.name, q.namespace, q.task, greatest(p.head - o.next, 1)
  from opened o join rouse.partitions p on p.id = o.partition_id
  join rouse.queues q on q.id = p.queue_id join rouse.groups g on g.id = o.group_id;
end $$;

-- Opens lanes whose lease ended in a user's transaction that has committed.
-- Parameters: the maximum number of rows. Result: wake hints.
-- Locks: those lanes by (partition, group), with SKIP LOCKED.
create or replace function rouse.promote_freed(p_limit integer)
returns setof rouse.wake_hint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_rows record;
  v_lanes record;
begin
  select array_agg(f.id) as ids, array_agg(f.partition_id) as partitions, array_agg(f.group_id) as groups into v_rows
  from (select * from rouse.freed order by id limit p_limit for update skip locked) f;
  if v_rows.ids is null then
    return;
  end if;
  -- Locked lanes are left for later: waiting for them while holding others could deadlock.
  select array_agg(l.partition_id) as partitions, array_agg(l.group_id) as groups into v_lanes
  from (
    select l.partition_id, l.group_id from rouse.lanes l
    where l.partition_id = any (v_rows.partitions) and l.group_id = any (v_rows.groups)
    order by l.partition_id, l.group_id
    for no key update skip locked
  ) l;
  return query
  with done as (
    delete from rouse.freed f
    where f.id = any (v_rows.ids)
      and (exists (select from unnest(v_lanes.partitions, v_lanes.groups) t(p, g) where t.p = f.partition_id and t.g = f.group_id)
        or not exists (select from rouse.lanes l where l.partition_id = f.partition_id and l.group_id = f.group_id))
    returning f.partition_id, f.group_id, f.lease_id
  ), opened as (
    -- A lane that was full opens; if it is still full, the next pop closes it again.
    update rouse.lanes l
    set lease_id = case when l.lease_id = any (d.lease_ids) then null else l.lease_id end, blocked_until = nullif(l.blocked_until, 'infinity')
    from (select d.partition_id, d.group_id, array_agg(d.lease_id) as lease_ids from done d group by d.partition_id, d.group_id) d
    where l.partition_id = d.partition_id and l.group_id = d.group_id
      and (l.lease_id = any (d.lease_ids) or l.blocked_until = 'infinity')
  )
  -- Every lane gets a hint, even if it was not opened: with an in-flight limit the group may now pop from any
  -- of its lanes. Requests that wait for a message to end get a hint if the queue keeps its whole history.
  select q.name, case when q.in_flight_max = 0 then p.name end, g.name, q.namespace, q.task,
    case when q.in_flight_max = 0 then nullif(greatest(p.head - l.next, 0), 0) end
  from (select distinct d.partition_id, d.group_id from done d) d
  join rouse.lanes l on l.partition_id = d.partition_id and l.group_id = d.group_id
  join rouse.partitions p on p.id = d.partition_id
  join rouse.queues q on q.id = p.queue_id join rouse.groups g on g.id = d.group_id
  union all
  select distinct q.name, null::text, chr(31), q.namespace, q.task, null::bigint
  from done d join rouse.partitions p on p.id = d.partition_id join rouse.queues q on q.id = p.queue_id and q.full_history;
end $$;
