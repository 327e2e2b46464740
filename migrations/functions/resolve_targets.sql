-- Looks up the partitions a call names and the queue options that a push obeys.
-- Parameters: queue and partition names, position by position.
-- Result: one row of arrays by position; a partition that does not exist is null.
-- Locks: none.
create or replace function rouse.resolve_targets(
  p_queues text[], p_partitions text[],
  out queue_ids integer[], out partition_ids bigint[], out namespaces text[], out tasks text[],
  out delays_ms bigint[], out dedup_ms bigint[], out limited boolean, out distinct_count integer
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_queue rouse.queues;
  v_count constant integer := cardinality(p_queues);
begin
  if p_queues[1] = all (p_queues) then
    select * into v_queue from rouse.queues q where q.name = p_queues[1];
    queue_ids := array_fill(v_queue.id, array[v_count]);
    namespaces := array_fill(v_queue.namespace, array[v_count]);
    tasks := array_fill(v_queue.task, array[v_count]);
    delays_ms := array_fill(v_queue.delay_ms, array[v_count]);
    dedup_ms := array_fill(v_queue.dedup_window_ms, array[v_count]);
    limited := v_queue.size_max > 0;
    -- Ordered here: count(distinct) sorts what every aggregate beside it sees.
    select array_agg(r.id order by r.n), count(distinct r.id) into partition_ids, distinct_count
    from (
      select t.n, p.id from unnest(p_partitions) with ordinality t(partition, n)
      left join lateral (select p.id from rouse.partitions p where p.queue_id = v_queue.id and p.name = t.partition offset 0) p on true
    ) r;
  else
    select * into queue_ids, partition_ids, namespaces, tasks, delays_ms, dedup_ms, limited, distinct_count
    from rouse.resolve_several(p_queues, p_partitions);
  end if;
  if distinct_count <> v_count and array_position(partition_ids, null) is null then
    perform rouse.raise('RS400', 'invalid_request', 'a push names each queue and partition once as a target');
  end if;
end $$;

-- The same where the targets belong to several queues.
-- Parameters and result: as resolve_targets. Locks: none.
create or replace function rouse.resolve_several(
  p_queues text[], p_partitions text[],
  out queue_ids integer[], out partition_ids bigint[], out namespaces text[], out tasks text[],
  out delays_ms bigint[], out dedup_ms bigint[], out limited boolean, out distinct_count integer
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  -- The fences keep each lookup an index probe whatever the planner believes about the size of the tables.
  select array_agg(r.queue_id order by r.n), array_agg(r.id order by r.n), array_agg(r.namespace order by r.n),
    array_agg(r.task order by r.n), array_agg(r.delay_ms order by r.n), array_agg(r.dedup_window_ms order by r.n), bool_or(r.size_max > 0), count(distinct r.id)
  into queue_ids, partition_ids, namespaces, tasks, delays_ms, dedup_ms, limited, distinct_count
  from (
    select t.n, q.id as queue_id, p.id, q.namespace, q.task, q.delay_ms, q.dedup_window_ms, q.size_max
    from unnest(p_queues, p_partitions) with ordinality t(queue, partition, n)
    left join lateral (select * from rouse.queues q where q.name = t.queue offset 0) q on true
    left join lateral (select p.id from rouse.partitions p where p.queue_id = q.id and p.name = t.partition offset 0) p on true
  ) r;
end $$;
