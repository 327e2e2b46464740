-- Finds out which wait groups of a node have something to pop. The fallback poll runs this one query for all
-- of them.
-- Parameters: per wait group, either a queue and one of its partitions (null: any), or a null queue and a
--   namespace and / or task; then the consumer group's name.
-- Result: the 1-based positions of the wait groups that have a lane to pop, or whose consumer group does not
--   exist yet on a queue with messages. Paused queues, and groups that have reached their in-flight limit or
--   used up their rate, have nothing to pop.
-- Locks: none.
create or replace function rouse.groups_with_work(
  p_queues text[], p_partitions text[], p_namespaces text[], p_tasks text[], p_groups text[]
) returns table (n integer)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_now constant timestamptz := rouse.now();
begin
  return query
  select t.n::integer
  from rows from (unnest(p_queues), unnest(p_partitions), unnest(p_namespaces), unnest(p_tasks), unnest(p_groups))
    with ordinality t(queue, partition, namespace, task, consumer_group, n)
  where exists (
    select
    from (
      select q.id, q.in_flight_max from rouse.queues q where q.name = t.queue and not q.paused
      union all
      select q.id, q.in_flight_max from unnest(case when t.queue is null then rouse.queues_of(t.namespace, t.task) end) s(id)
        join rouse.queues q on q.id = s.id and not q.paused
    ) q
    left join rouse.groups g on g.queue_id = q.id and g.name = t.consumer_group
    where (q.in_flight_max = 0 or g.id is null or q.in_flight_max > (
        select coalesce(sum(bit_count(s.unacked)), 0) from rouse.leases s where s.group_id = g.id and s.limited))
      and (g.blocked_until is null or g.blocked_until <= v_now)
      and case
      -- OFFSET 0 keeps this an index lookup. Without it PostgreSQL may read the ready lanes of all groups and
      -- search among them.
      when g.id is not null and t.partition is null then exists (
        select from rouse.lanes l where l.group_id = g.id and l.ready and l.lease_id is null and l.blocked_until is null offset 0)
      when g.id is not null then exists (
        select from rouse.partitions p
          cross join lateral (
            select from rouse.lanes l
            where l.partition_id = p.id and l.group_id = g.id and l.ready and l.lease_id is null and l.blocked_until is null offset 0) l
        where p.queue_id = q.id and p.name = t.partition)
      when t.partition is null then exists (
        select from rouse.partitions p where p.queue_id = q.id and p.head > p.tail)
      else exists (
        select from rouse.partitions p where p.queue_id = q.id and p.name = t.partition and p.head > p.tail)
    end);
end $$;
