-- Appends messages to the log and creates missing queues and partitions. Either all messages are stored or
-- none.
-- Parameters: the targets, as parallel arrays of queue and partition names (null: the message is
--   independent, or goes to `Default` if the queue's ordering is not keyed); per message, grouped by target,
--   the 1-based target, its id and its payload as JSON text; transaction ids, trace ids, headers as JSON
--   text, delays in ms, absolute due times and options (see message_options.sql), each null if no message has
--   one; the maximum wait for a lock.
-- Result: one row per target: partition, first seq, messages added, namespace and task (the caller knows the
--   rest of the wake hint); the duplicates, with the ids of their originals, the scheduled messages, and those of
--   the duplicates that replaced their originals, all by their 1-based position in the call; and the name of the
--   partition.
-- Locks: queues with a size limit by id, partitions by id, then those of their lanes that are not ready, by
--   (partition, group).
create or replace function rouse.push_v2(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[],
  p_transaction_ids text[] default null, p_trace_ids text[] default null, p_headers text[] default null,
  p_delays_ms bigint[] default null, p_due_at timestamptz[] default null, p_options text[] default null,
  p_lock_timeout_ms integer default null
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[], replaced integer[], partition text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_partitions text[];
  v_count constant integer := cardinality(p_payloads);
  v_id bigint;
  v_last_created_at timestamptz;
  v_dedup_ms bigint;
  v_now timestamptz;
  v_new_keys integer;
  v_setting text;
begin
  if p_lock_timeout_ms is not null then
    v_setting := set_config('lock_timeout', p_lock_timeout_ms::text, true);
  end if;
  -- The short path: one partition without delays, options or limits is resolved and locked in one statement.
  if cardinality(p_queues) = 1 and p_delays_ms is null and p_due_at is null and p_options is null
     and current_setting('transaction_isolation') = 'read committed' then
    select 1, p.id, p.id, p.head, v_count, q.namespace, q.task, p.name, p.last_created_at, q.dedup_window_ms
    into target, partition_id, v_id, first_seq, added, namespace, task, partition, v_last_created_at, v_dedup_ms
    from rouse.queues q, rouse.partitions p
    where q.name = p_queues[1] and q.size_max = 0 and q.delay_ms = 0 and not q.encryption and p.queue_id = q.id
      and p.name = rouse.partition_of(q.ordering, p_partitions[1])
      and not (q.ordering = 'partition' and rouse.is_level(p.name))  -- push_general refuses a priority
    for no key update of p;
  end if;
  if v_id is null then
    v_partitions := p_partitions;
    if array_position(p_partitions, null) is not null and cardinality(p_partitions) = cardinality(p_queues) then
      v_partitions := rouse.name_partitions(p_queues, p_partitions, p_targets);
      if exists (select from unnest(p_queues, v_partitions) t(queue, partition) group by t.queue, t.partition having count(*) > 1) then
        return query select * from rouse.push_merged(p_queues, v_partitions, p_targets, p_ids, p_payloads,
          p_transaction_ids, p_trace_ids, p_headers, p_delays_ms, p_due_at, p_options);
        return;
      end if;
    end if;
    return query select r.*, v_partitions[r.target] from rouse.push_general(p_queues, v_partitions, p_targets, p_ids, p_payloads,
      p_transaction_ids, p_trace_ids, p_headers, p_delays_ms, p_due_at, p_options) r;
    return;
  end if;
  -- barrier: push-locked
  if v_count is distinct from cardinality(p_ids) or v_count is distinct from cardinality(p_targets)
     or array_position(p_payloads, null) is not null or array_position(p_ids, null) is not null then
    perform rouse.check_push(p_queues, p_partitions, p_targets, p_ids, p_payloads);
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    v_setting := set_config('synchronous_commit', 'on', true);
  end if;
  -- The time is read after the lock, so that this message is newer than any subscription that was made while
  -- the call waited.
  v_now := rouse.now();
  if p_transaction_ids is not null and v_dedup_ms > 0 then
    -- Stores the keys without a lookup: most are new.
    insert into rouse.dedup (partition_id, key, message_id, seq, expires_at)
    select v_id, m.key, m.id, first_seq + m.n - 1, v_now + v_dedup_ms * interval '1 millisecond'
    from unnest(p_transaction_ids, p_ids) with ordinality m(key, id, n)
    where m.key is not null
    on conflict on constraint dedup_pkey do nothing;
    get diagnostics v_new_keys = row_count;
    if v_new_keys < v_count and v_new_keys < cardinality(array_remove(p_transaction_ids, null)) then
      return query select r.*, partition from rouse.push_known(v_id, first_seq, v_last_created_at, v_dedup_ms, namespace, task,
        p_ids, p_payloads, p_transaction_ids, p_trace_ids, p_headers, v_now) r;
      return;
    end if;
  end if;
  update rouse.partitions p set head = first_seq + v_count, last_created_at = greatest(v_now, v_last_created_at) where p.id = v_id;
  -- barrier: push-head-moved
  if v_count = 1 then
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    values (v_id, first_seq, p_ids[1], greatest(v_now, v_last_created_at), p_transaction_ids[1], p_trace_ids[1], p_payloads[1], p_headers[1]);
  elsif p_transaction_ids is null and p_trace_ids is null and p_headers is null then
    insert into rouse.messages (partition_id, seq, id, created_at, payload)
    select v_id, first_seq + m.n - 1, m.id, greatest(v_now, v_last_created_at), m.payload
    from unnest(p_ids, p_payloads) with ordinality m(id, payload, n);
  else
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select v_id, first_seq + m.n - 1, m.id, greatest(v_now, v_last_created_at), m.transaction_id, m.trace_id, m.payload, m.headers
    from unnest(p_ids, p_payloads, p_transaction_ids, p_trace_ids, p_headers) with ordinality
      m(id, payload, transaction_id, trace_id, headers, n);
  end if;
  -- barrier: push-inserted
  perform from rouse.lanes l where l.partition_id = v_id and not l.ready order by l.group_id for no key update;
  if found then
    update rouse.lanes l set ready = true where l.partition_id = v_id and not l.ready;
  end if;
  -- barrier: push-woken
  return next;
end $$;

-- The same for nodes of release 0.1.0, which always name a partition.
-- Parameters: as push_v2, without options. Result: as push_v2, without the partition. Locks: as push_v2.
create or replace function rouse.push(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[],
  p_transaction_ids text[] default null, p_trace_ids text[] default null, p_headers text[] default null,
  p_delays_ms bigint[] default null, p_due_at timestamptz[] default null, p_lock_timeout_ms integer default null
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[]
)
language plpgsql
as $$
begin
  return query
  select r.target, r.partition_id, r.first_seq, r.added, r.namespace, r.task, r.duplicates, r.originals, r.scheduled
  from rouse.push_v2(p_queues, p_partitions, p_targets, p_ids, p_payloads, p_transaction_ids, p_trace_ids, p_headers,
    p_delays_ms, p_due_at, null, p_lock_timeout_ms) r;
end $$;

-- Refuses a call whose arrays differ in length or contain a null. The error names the item.
-- Parameters: as push. Result: nothing. Locks: none.
create or replace function rouse.check_push(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[]
) returns void
language plpgsql
as $$
declare
  v_bad integer;
begin
  if coalesce(cardinality(p_queues), 0) = 0 or coalesce(cardinality(p_payloads), 0) = 0
     or cardinality(p_queues) is distinct from cardinality(p_partitions)
     or cardinality(p_payloads) is distinct from cardinality(p_ids)
     or cardinality(p_payloads) is distinct from cardinality(p_targets) then
    perform rouse.raise('RS400', 'invalid_request', 'push needs as many ids and targets as payloads, and a partition for each queue');
  end if;
  v_bad := coalesce(array_position(p_payloads, null), array_position(p_ids, null));
  if v_bad is not null then
    perform rouse.raise('RS400', 'invalid_payload', 'a message needs an id and a payload', jsonb_build_object('item', v_bad));
  end if;
end $$;

-- Sets ready on the lanes of these partitions, so that pops find them. A lane that is ready already is not
-- written, so that pushes and pops do not collide.
-- Parameters: partition ids, whose rows the caller has locked. Result: nothing.
-- Locks: the lanes that are not ready, by (partition, group).
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
