-- Push in its general form: any number of partitions, deduplication, delays, size limits. See push.
-- Parameters and result: as push.
-- Locks: queues with a size limit by id, partitions by id, then their lanes that are not ready by (partition, group).
create or replace function rouse.push_many(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[],
  p_transaction_ids text[], p_trace_ids text[], p_headers text[], p_delays_ms bigint[], p_due_at timestamptz[]
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[]
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_targets record;
  v_now timestamptz;
  v_starts bigint[];        -- by target, the position of its first message in the call
  v_counts integer[];       -- by target, how many messages it adds to the log
  v_locked bigint[];
  v_heads bigint[];         -- by target, the seq of the first message it adds
  v_lasts timestamptz[];    -- by target, the time of the last message before
  v_places integer[];       -- by message, its place among what its target adds; null: not added
  v_due_at timestamptz[];   -- by message, when it is due; null: now
  v_originals uuid[];       -- by message, what it is a duplicate of
  v_any_scheduled boolean := false;
  v_sorted boolean;         -- not all messages are simply added, in order
begin
  perform rouse.check_push(p_queues, p_partitions, p_targets, p_ids, p_payloads);
  perform rouse.raise_durability();
  select array_agg(t.start order by t.target), array_agg(t.count order by t.target) into v_starts, v_counts
  from (select i.target, min(i.n) as start, count(*)::integer as count
    from unnest(p_targets) with ordinality i(target, n) group by i.target) t;
  if cardinality(v_starts) <> cardinality(p_queues) or exists (
    select from unnest(v_starts, v_counts) with ordinality t(start, count, n)
    where p_targets[t.start] <> t.n or p_targets[t.start + t.count - 1] <> t.n) then
    perform rouse.raise('RS400', 'invalid_request', 'push wants the messages in groups by target, in the order of the targets');
  end if;
  v_targets := rouse.resolve_targets(p_queues, p_partitions);
  if array_position(v_targets.partition_ids, null) is not null then
    perform rouse.create_targets(p_queues, p_partitions, p_targets);
    v_targets := rouse.resolve_targets(p_queues, p_partitions);
  end if;
  if v_targets.limited then
    perform rouse.check_size(v_targets.queue_ids, p_targets);
  end if;
  -- barrier: push-many-resolved

  select array_agg(p.id), array_agg(p.head), array_agg(p.last_created_at) into v_locked, v_heads, v_lasts
  from (
    select p.id, p.head, p.last_created_at from rouse.partitions p
    where p.id = any (v_targets.partition_ids) order by p.id for no key update
  ) p;
  if cardinality(v_locked) is distinct from cardinality(p_queues) then
    perform rouse.raise('RS001', 'retry', 'a partition went away while the push waited for it');
  end if;
  if v_locked <> v_targets.partition_ids then
    v_heads := array(select v_heads[array_position(v_locked, t.id)] from unnest(v_targets.partition_ids) with ordinality t(id, n) order by t.n);
    v_lasts := array(select v_lasts[array_position(v_locked, t.id)] from unnest(v_targets.partition_ids) with ordinality t(id, n) order by t.n);
  end if;
  -- barrier: push-many-locked
  v_now := rouse.now();
  v_sorted := p_delays_ms is not null or p_due_at is not null or 0 < any (v_targets.delays_ms);
  if not v_sorted and p_transaction_ids is not null then
    v_sorted := not rouse.remember_keys(v_targets.partition_ids, v_targets.dedup_ms, v_heads, v_starts,
      p_targets, p_ids, p_transaction_ids, v_now);
  end if;
  if v_sorted then
    select * into v_places, v_due_at, v_originals, v_any_scheduled
    from rouse.sort_push(v_targets.partition_ids, v_targets.delays_ms, v_targets.dedup_ms, v_heads, p_targets, p_ids,
      p_transaction_ids, p_delays_ms, p_due_at, v_now);
    v_counts := array(select count(i.place)::integer from unnest(p_targets, v_places) i(target, place) group by i.target order by i.target);
  end if;
  update rouse.partitions p
  set head = p.head + v_counts[array_position(v_targets.partition_ids, p.id)], last_created_at = greatest(v_now, p.last_created_at)
  where p.id = any (v_targets.partition_ids);
  -- barrier: push-many-head-moved

  if v_sorted then
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select v_targets.partition_ids[m.target], v_heads[m.target] + m.place - 1, m.id, greatest(v_now, v_lasts[m.target]),
      m.transaction_id, m.trace_id, m.payload, m.headers
    from unnest(p_targets, v_places, p_ids, p_transaction_ids, p_trace_ids, p_payloads, p_headers)
      m(target, place, id, transaction_id, trace_id, payload, headers)
    where m.place is not null;
  else
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select v_targets.partition_ids[m.target], v_heads[m.target] + m.n - v_starts[m.target], m.id, greatest(v_now, v_lasts[m.target]),
      m.transaction_id, m.trace_id, m.payload, m.headers
    from unnest(p_targets, p_ids, p_transaction_ids, p_trace_ids, p_payloads, p_headers)
      with ordinality m(target, id, transaction_id, trace_id, payload, headers, n);
  end if;
  if v_any_scheduled then
    insert into rouse.scheduled (queue, partition, due_at, message_id, transaction_id, trace_id, payload, headers, origin, created_at)
    -- Without a key it is known by its id from now on: the seq it will have is not known yet.
    select p_queues[m.target], p_partitions[m.target], m.due_at, m.id, coalesce(m.transaction_id, m.id::text), m.trace_id, m.payload,
      m.headers, 'broker', v_now
    from unnest(p_targets, v_due_at, p_ids, p_transaction_ids, p_trace_ids, p_payloads, p_headers)
      with ordinality m(target, due_at, id, transaction_id, trace_id, payload, headers, n)
    where m.due_at is not null order by m.n;
  end if;
  -- barrier: push-many-inserted
  perform rouse.wake_lanes(v_targets.partition_ids);
  -- barrier: push-many-woken

  return query
  select t.n::integer, t.id, v_heads[t.n], v_counts[t.n], t.namespace, t.task, null::integer[], null::uuid[], null::integer[]
  from unnest(v_targets.partition_ids, v_targets.namespaces, v_targets.tasks) with ordinality t(id, namespace, task, n)
  where not v_sorted
  union all
  select i.target, v_targets.partition_ids[i.target], v_heads[i.target], v_counts[i.target], v_targets.namespaces[i.target],
    v_targets.tasks[i.target], array_agg(i.n::integer order by i.n) filter (where i.original is not null),
    array_agg(i.original order by i.n) filter (where i.original is not null),
    array_agg(i.n::integer order by i.n) filter (where i.due_at is not null)
  from unnest(p_targets, v_originals, v_due_at) with ordinality i(target, original, due_at, n)
  where v_sorted
  group by i.target
  order by 1;
end $$;
