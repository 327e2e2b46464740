-- The lanes of messages with a priority (push/levels.sql), which a pop takes before all others.

-- The partitions of messages with a priority.
-- Parameters: the queue's id. Result: their ids, the highest priority first. Locks: none.
create or replace function rouse.level_ids(p_queue_id integer) returns bigint[]
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  return array(
    select p.id from rouse.partitions p
    where p.queue_id = p_queue_id and p.name > rouse.independent_partition() and p.name < chr(31) || ':' order by p.id);
end $$;

-- Locks the lanes of these partitions that a pop may take and that have messages.
-- Parameters: the group, the partitions. Result: the partitions whose lanes were locked, in order.
-- Locks: those lanes, with SKIP LOCKED.
create or replace function rouse.lock_levels(p_group_id integer, p_level_ids bigint[]) returns bigint[]
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return array(
    select l.partition_id from rouse.lanes l
    cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
    where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
      and l.partition_id = any (p_level_ids)
      and (p.head > greatest(l.next, p.tail) or exists (
        select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = p_group_id))
    order by l.group_id, l.partition_id
    for no key update of l skip locked);
end $$;

-- The first of these partitions whose lane has messages but was not locked, because another call holds it.
-- Parameters: the group, the partitions, those whose lanes the caller has locked. Result: a partition, or null.
-- Locks: none.
create or replace function rouse.first_level_missed(p_group_id integer, p_level_ids bigint[], p_locked bigint[]) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return (
    select l.partition_id from rouse.lanes l
    cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
    where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
      and l.partition_id = any (p_level_ids) and l.partition_id <> all (p_locked)
      and (p.head > greatest(l.next, p.tail) or exists (
        select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = p_group_id and r.announced))
    order by l.group_id, l.partition_id limit 1);
end $$;
