-- Looks up the partitions of a call and the queue options that affect a push.
-- Parameters: parallel arrays of queue and partition names; each pair is a target.
-- Result: one row of arrays, sorted by partition id, the order in which partitions are locked: for each
--   partition its target and its properties. Partitions that do not exist have a null id and come last.
--   `limited`: some queue has a size limit, is encrypted, or may have to refuse a priority.
-- Locks: none.
create or replace function rouse.find_targets(
  p_queues text[], p_partitions text[],
  out targets integer[], out queue_ids integer[], out partition_ids bigint[], out namespaces text[], out tasks text[],
  out delays_ms bigint[], out dedup_ms bigint[], out limited boolean
)
language plpgsql
-- Nested loops are off: the planner expects only ten names, and would compare each name with every partition
-- that it found.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = on set enable_nestloop = off
as $$
declare
  v_queue_id integer;
begin
  -- This way needs PostgreSQL 17. Older versions probe the index for each name anyway, or read all partitions
  -- of the queue if the statistics are old.
  if p_queues[1] = all (p_queues) and current_setting('server_version_num')::integer >= 170000 then
    select q.id, array_fill(q.id, q.c), array_fill(q.namespace, q.c), array_fill(q.task, q.c), array_fill(q.delay_ms, q.c),
      array_fill(q.dedup_window_ms, q.c), q.size_max > 0 or q.encryption or (q.prioritized and q.ordering = 'partition')
    into v_queue_id, queue_ids, namespaces, tasks, delays_ms, dedup_ms, limited
    from (select q.*, array[cardinality(p_queues)] as c from rouse.queues q where q.name = p_queues[1]) q;
    -- One index scan finds all names, which is cheaper than a probe for each.
    select array_agg(t.n::integer order by p.id), array_agg(p.id order by p.id) into targets, partition_ids
    from unnest(p_partitions) with ordinality t(name, n)
    left join rouse.partitions p on p.queue_id = v_queue_id and p.name = any (p_partitions) and p.name = t.name;
  else
    select * into targets, queue_ids, partition_ids, namespaces, tasks, delays_ms, dedup_ms, limited
    from rouse.find_targets_of_several(p_queues, p_partitions);
  end if;
end $$;

-- The same with one probe per target, for targets of several queues.
-- Parameters and result: as find_targets. Locks: none.
create or replace function rouse.find_targets_of_several(
  p_queues text[], p_partitions text[],
  out targets integer[], out queue_ids integer[], out partition_ids bigint[], out namespaces text[], out tasks text[],
  out delays_ms bigint[], out dedup_ms bigint[], out limited boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
  -- OFFSET 0 keeps each lookup an index probe, whatever the planner assumes about the size of the tables.
  select array_agg(r.n::integer order by r.id), array_agg(r.queue_id order by r.id), array_agg(r.id order by r.id),
    array_agg(r.namespace order by r.id), array_agg(r.task order by r.id), array_agg(r.delay_ms order by r.id),
    array_agg(r.dedup_window_ms order by r.id), bool_or(r.size_max > 0 or r.encryption or (r.prioritized and r.ordering = 'partition'))
  into targets, queue_ids, partition_ids, namespaces, tasks, delays_ms, dedup_ms, limited
  from (
    select t.n, q.id as queue_id, p.id, q.namespace, q.task, q.delay_ms, q.dedup_window_ms, q.size_max, q.encryption,
      q.prioritized, q.ordering
    from unnest(p_queues, p_partitions) with ordinality t(queue, partition, n)
    left join lateral (select * from rouse.queues q where q.name = t.queue offset 0) q on true
    left join lateral (select p.id from rouse.partitions p where p.queue_id = q.id and p.name = t.partition offset 0) p on true
  ) r;
end $$;

-- Raises the error for a call that could not lock all its targets.
-- Parameters: the partition ids, sorted. Result: never returns. Locks: none.
create or replace function rouse.refuse_targets(p_partition_ids bigint[]) returns void
language plpgsql
as $$
begin
  if exists (select from unnest(p_partition_ids) i group by i having count(*) > 1) then
    perform rouse.raise('RS400', 'invalid_request', 'a push must name each target only once');
  end if;
  perform rouse.raise('RS001', 'retry', 'a partition was deleted while the call waited for it');
end $$;
