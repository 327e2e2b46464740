-- Appends messages to the log, creating queues and partitions on the way. All or nothing.
-- Parameters: the targets (queue and partition names, position by position); for every message, in groups by target,
--   the 1-based target, its id and its payload as JSON text; and where any message has them (else null) transaction
--   ids, trace ids, headers as JSON text, delays in ms, and absolute due times.
-- Result: a row a target: partition, first seq, messages added, namespace and task (that is its `woken`), and by
--   1-based position in the call the messages that were duplicates, with the ids of their originals, and the scheduled.
-- Locks: queues with a size limit by id, partitions by id, then their lanes that are not ready by (partition, group).
create or replace function rouse.push(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[],
  p_transaction_ids text[] default null, p_trace_ids text[] default null, p_headers text[] default null,
  p_delays_ms bigint[] default null, p_due_at timestamptz[] default null
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[]
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_count integer := cardinality(p_payloads);
  v_queue record;
  v_now timestamptz;
  v_seq bigint;
begin
  if cardinality(p_queues) <> 1 or p_transaction_ids is not null or p_delays_ms is not null or p_due_at is not null then
    return query select * from rouse.push_many(p_queues, p_partitions, p_targets, p_ids, p_payloads,
      p_transaction_ids, p_trace_ids, p_headers, p_delays_ms, p_due_at);
    return;
  end if;

  -- The short way: one partition, no keys, no delays.
  select p.id, q.namespace, q.task, q.size_max, q.delay_ms into v_queue
  from rouse.queues q join rouse.partitions p on p.queue_id = q.id and p.name = p_partitions[1]
  where q.name = p_queues[1];
  if not found or v_queue.size_max > 0 or v_queue.delay_ms > 0 then
    return query select * from rouse.push_many(p_queues, p_partitions, p_targets, p_ids, p_payloads,
      p_transaction_ids, p_trace_ids, p_headers, p_delays_ms, p_due_at);
    return;
  end if;
  perform rouse.check_push(p_queues, p_partitions, p_targets, p_ids, p_payloads);
  perform rouse.raise_durability();
  -- barrier: push-resolved

  perform from rouse.partitions p where p.id = v_queue.id for no key update;
  if not found then
    perform rouse.raise('RS001', 'retry', 'the partition went away while the push waited for it');
  end if;
  -- barrier: push-locked
  -- The time is read after the lock: a consumer that subscribed meanwhile must find this message newer than itself.
  update rouse.partitions p
  set head = p.head + v_count, last_created_at = greatest(rouse.now(), p.last_created_at)
  where p.id = v_queue.id
  returning p.head - v_count, p.last_created_at into v_seq, v_now;
  -- barrier: push-head-moved

  insert into rouse.messages (partition_id, seq, id, created_at, trace_id, payload, headers)
  select v_queue.id, v_seq + m.n - 1, m.id, v_now, m.trace_id, m.payload, m.headers
  from rows from (unnest(p_ids), unnest(p_payloads), unnest(p_trace_ids), unnest(p_headers))
    with ordinality m(id, payload, trace_id, headers, n);
  -- barrier: push-inserted
  perform rouse.wake_lanes(array[v_queue.id]);
  -- barrier: push-woken
  return query select 1, v_queue.id, v_seq, v_count, v_queue.namespace, v_queue.task, null::integer[], null::uuid[], null::integer[];
end $$;

-- Refuses a call whose arrays do not match each other or hold a null, naming the item.
-- Parameters: as push. Result: nothing. Locks: none.
create or replace function rouse.check_push(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[]
) returns void
language plpgsql
as $$
declare
  v_bad integer;
begin
  if cardinality(p_queues) is distinct from cardinality(p_partitions)
     or cardinality(p_payloads) is distinct from cardinality(p_ids)
     or cardinality(p_payloads) is distinct from cardinality(p_targets) then
    perform rouse.raise('RS400', 'invalid_request', 'push wants as many ids and targets as payloads, and a partition for each queue');
  end if;
  v_bad := coalesce(array_position(p_payloads, null), array_position(p_ids, null));
  if v_bad is not null then
    perform rouse.raise('RS400', 'invalid_payload', 'a message wants an id and a payload', jsonb_build_object('item', v_bad));
  end if;
end $$;

-- Sets ready on the lanes of these partitions that are not, so that pops find them.
-- A lane already ready is not written: pops do not collide with pushes.
-- Parameters: partition ids, whose rows the caller has locked. Result: nothing.
-- Locks: those lanes, by (partition, group).
create or replace function rouse.wake_lanes(p_partitions bigint[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  perform from rouse.lanes l
  where l.partition_id = any (p_partitions) and not l.ready
  order by l.partition_id, l.group_id
  for no key update;
  if found then
    update rouse.lanes l set ready = true where l.partition_id = any (p_partitions) and not l.ready;
  end if;
end $$;
