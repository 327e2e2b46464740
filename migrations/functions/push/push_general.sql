-- The general form of push: any number of partitions, deduplication, delays, options, size limits.
-- A target is the 1-based position of a queue and partition in the call. A slot is the 1-based position of a
-- target among the partitions of the call sorted by id, the order in which they are locked. An offset is the
-- distance of a message from the first one that the call adds to its partition: its seq is the partition's
-- head plus its offset.
-- Parameters and result: as push.
-- Locks: in this order, if messages have unique keys, those of share_keys; if messages may be replaced, those of
--   lock_queues; queues with a size limit, by id; partitions, by id; those of lock_keys; by (partition, group),
--   the lanes that are not ready and all lanes of messages that may be replaced.
create or replace function rouse.push_general(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[],
  p_transaction_ids text[], p_trace_ids text[], p_headers text[], p_delays_ms bigint[], p_due_at timestamptz[],
  p_options text[]
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[], replaced integer[]
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_targets record;         -- arrays per slot
  v_now timestamptz;
  v_setting text;
  v_well_formed boolean;
  v_starts integer[];       -- per target, the position of its first message in the call; then the position after the last
  v_slots integer[];        -- per message
  v_ids bigint[];           -- per slot, the partition
  v_heads bigint[];         -- per slot, the seq of the first message it adds
  v_lasts timestamptz[];    -- per slot, the time of its last message before this call
  v_rows tid[];             -- per slot, the location of the partition's row while it is locked
  v_counts integer[];       -- per slot, the number of messages added to the log
  v_offsets integer[];      -- per message; null: not added to the log
  v_due_at timestamptz[];   -- per message, when it is due; null: now
  v_originals uuid[];       -- per message, the message that it duplicates
  v_any_scheduled boolean := false;
  v_limited integer[];      -- the locked queues with a size limit
  v_has_unique boolean := false;
  v_unique record;          -- the unique keys of the call and what follows from them (see sort_unique)
  v_payloads text[] := p_payloads;
  v_headers text[] := p_headers;
  v_options text[] := p_options;
  v_delays_ms bigint[] := p_delays_ms;
  v_replaces boolean[];     -- per message: it replaces its original
  v_sorted boolean;         -- some message has a delay, options, or a key that was seen before
begin
  if cardinality(p_queues) is distinct from cardinality(p_partitions) or cardinality(p_payloads) is distinct from cardinality(p_ids)
     or cardinality(p_payloads) is distinct from cardinality(p_targets) or coalesce(cardinality(p_payloads), 0) = 0
     or array_position(p_payloads, null) is not null or array_position(p_ids, null) is not null then
    perform rouse.check_push(p_queues, p_partitions, p_targets, p_ids, p_payloads);
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') or current_setting('transaction_isolation') <> 'read committed' then
    v_setting := rouse.raise_durability();
  end if;
  -- Wherever the target changes, it must increase by one, starting with 1.
  select array_agg(m.n) || cardinality(p_targets) + 1, bool_and(m.target is not distinct from m.previous + 1)
  into v_starts, v_well_formed
  from (
    select unnest(p_targets) as target, unnest(0 || p_targets) as previous, generate_series(1, cardinality(p_targets)) as n
  ) m
  where m.target is distinct from m.previous and m.n is not null;
  if v_well_formed is not true or cardinality(v_starts) is distinct from cardinality(p_queues) + 1 then
    perform rouse.raise('RS400', 'invalid_request', 'push needs the messages grouped by target, in the order of the targets');
  end if;
  if p_options is not null and rouse.has_unique(p_options) then
    perform rouse.share_keys(p_queues);
    if rouse.may_replace(p_options) then
      -- No new group meanwhile, whose first pop could deliver what the call replaces.
      perform rouse.create_queues(p_queues, p_targets);
      perform rouse.lock_queues(p_queues, p_partitions);
    end if;
    v_has_unique := true;
  end if;
  v_targets := rouse.find_targets(p_queues, p_partitions);
  if array_position(v_targets.partition_ids, null) is not null then
    perform rouse.create_targets(p_queues, p_partitions, p_targets);
    v_targets := rouse.find_targets(p_queues, p_partitions);
  end if;
  v_ids := v_targets.partition_ids;
  if v_targets.limited then
    perform rouse.check_levels(p_queues, p_partitions, p_targets);
    perform rouse.check_sealed(v_targets.queue_ids, rouse.slots_of(v_targets.targets, p_targets), p_payloads);
    v_limited := array(
      select q.id from rouse.queues q where q.id = any (v_targets.queue_ids) and q.size_max > 0 order by q.id for no key update);
  end if;
  -- barrier: push-general-resolved

  -- A concurrent push to the same partitions waits here, for the first partition. The next statement then
  -- sees the current versions of the other partitions. Without this, PostgreSQL would follow each updated row
  -- to its new version, which costs more than locking it.
  perform from rouse.partitions p where p.id = v_ids[1] for no key update;
  select array_agg(p.head), array_agg(p.last_created_at), array_agg(p.ctid) into v_heads, v_lasts, v_rows
  from (
    select p.head, p.last_created_at, p.ctid from rouse.partitions p where p.id = any (v_ids) order by p.id for no key update
  ) p;
  if cardinality(v_heads) is distinct from cardinality(v_ids) then
    perform rouse.refuse_targets(v_ids);
  end if;
  -- barrier: push-general-locked
  v_now := rouse.now();
  v_due_at := p_due_at;
  if v_has_unique then
    v_slots := rouse.slots_of(v_targets.targets, p_targets);
    v_unique := rouse.sort_unique(v_targets.queue_ids, v_ids, v_targets.delays_ms, v_targets.dedup_ms, v_slots, p_ids, p_transaction_ids,
      p_payloads, p_headers, p_delays_ms, p_due_at, p_options, v_now);
    v_payloads := v_unique.payloads;
    v_headers := v_unique.headers;
    v_delays_ms := v_unique.delays_ms;
    v_due_at := v_unique.due_at;
    v_options := v_unique.options;
    v_originals := v_unique.originals;
    v_replaces := v_unique.replaces;
  end if;
  v_sorted := p_delays_ms is not null or p_due_at is not null or p_options is not null or 0 < any (v_targets.delays_ms);
  if v_sorted or p_transaction_ids is not null then
    v_slots := rouse.slots_of(v_targets.targets, p_targets);
    v_sorted := v_sorted or not rouse.remember_keys(v_ids, v_targets.dedup_ms, v_heads,
      array(select v_starts[t.target] from unnest(v_targets.targets) with ordinality t(target, slot) order by t.slot),
      v_slots, p_ids, p_transaction_ids, v_now);
  end if;
  if v_sorted then
    select * into v_offsets, v_due_at, v_originals, v_any_scheduled
    from rouse.sort_push(v_ids, v_targets.delays_ms, v_targets.dedup_ms, v_heads, v_slots, p_ids,
      p_transaction_ids, v_delays_ms, v_due_at, v_now, v_originals);
    v_counts := array(select count(i.seq_offset)::integer from unnest(v_slots, v_offsets) i(slot, seq_offset) group by i.slot order by i.slot);
  else
    v_counts := array(select v_starts[t.target + 1] - v_starts[t.target]
      from unnest(v_targets.targets) with ordinality t(target, slot) order by t.slot);
  end if;
  if v_has_unique then
    v_originals := rouse.store_unique(v_unique.items, v_unique.queue_ids, v_unique.scopes, v_unique.keys, v_unique.windows_ms,
      v_unique.holders, v_originals, v_ids, v_heads, v_slots, p_ids, v_offsets, v_now);
  end if;
  -- The size is not checked earlier, because duplicates use no space and are known only under the locks of
  -- the partitions. A queue that got its limit meanwhile is ignored: waiting for it now would break the lock
  -- order.
  if cardinality(v_limited) > 0 then
    perform rouse.check_size(v_targets.queue_ids, array(
      select i.slot from unnest(coalesce(v_slots, rouse.slots_of(v_targets.targets, p_targets)), v_originals) i(slot, original)
      where i.original is null and v_targets.queue_ids[i.slot] = any (v_limited)));
  end if;
  -- Scheduled messages and duplicates do not change last_created_at: otherwise a window buffer would wait
  -- although nothing was added.
  update rouse.partitions p
  set head = p.head + v_counts[width_bucket(p.id, v_ids)], last_created_at = greatest(v_now, p.last_created_at)
  where p.ctid = any (v_rows) and v_counts[width_bucket(p.id, v_ids)] > 0;
  -- barrier: push-general-head-moved

  if v_sorted then
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select v_ids[m.slot], v_heads[m.slot] + m.seq_offset, m.id, greatest(v_now, v_lasts[m.slot]),
      m.transaction_id, m.trace_id, m.payload, m.headers
    from unnest(v_slots, v_offsets, p_ids, p_transaction_ids, p_trace_ids, v_payloads, v_headers)
      m(slot, seq_offset, id, transaction_id, trace_id, payload, headers)
    where m.seq_offset is not null;
  else
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select m.id, m.head + m.n - v_starts[m.target], p_ids[m.n], greatest(v_now, m.last), p_transaction_ids[m.n], p_trace_ids[m.n],
      p_payloads[m.n], p_headers[m.n]
    from (
      select t.target, t.id, t.head, t.last, generate_series(v_starts[t.target], v_starts[t.target + 1] - 1) as n
      from (
        select unnest(v_targets.targets) as target, unnest(v_ids) as id, unnest(v_heads) as head, unnest(v_lasts) as last
      ) t
    ) m;
  end if;
  if v_targets.limited then
    perform rouse.remember_ids(v_ids, v_heads, v_counts);
  end if;
  if p_options is not null then
    perform rouse.store_options(array_agg(v_ids[m.slot]), array_agg(v_heads[m.slot] + m.seq_offset),
      array_agg(greatest(v_now, v_lasts[m.slot])), array_agg(m.options))
    from unnest(v_slots, v_offsets, v_options) m(slot, seq_offset, options)
    where m.seq_offset is not null and m.options is not null;
  end if;
  if v_any_scheduled then
    insert into rouse.scheduled (queue, partition, due_at, message_id, transaction_id, trace_id, payload, headers, origin, created_at, options)
    -- Without a dedupe key, the message's id becomes its transaction id, because its seq is not known yet.
    select p_queues[m.target], p_partitions[m.target], m.due_at, i.id, coalesce(m.transaction_id, i.id::text), m.trace_id, m.payload,
      m.headers, 'broker', v_now, m.options
    from unnest(p_targets, v_due_at, p_ids, p_transaction_ids, p_trace_ids, v_payloads, v_headers, v_options)
      with ordinality m(target, due_at, id, transaction_id, trace_id, payload, headers, options, n)
    cross join lateral (select rouse.id_without_place(m.id) as id) i
    where m.due_at is not null order by m.n;
  end if;
  -- barrier: push-general-inserted
  if exists (select from rouse.lanes l where l.partition_id = any (v_ids) and not l.ready) then
    perform rouse.wake_lanes(v_ids);
  end if;
  -- barrier: push-general-woken

  if v_sorted then
    return query
    select i.target, v_ids[i.slot], v_heads[i.slot], v_counts[i.slot], v_targets.namespaces[i.slot],
      v_targets.tasks[i.slot], array_agg(i.n::integer order by i.n) filter (where i.original is not null),
      array_agg(i.original order by i.n) filter (where i.original is not null),
      array_agg(i.n::integer order by i.n) filter (where i.due_at is not null),
      array_agg(i.n::integer order by i.n) filter (where i.replaces)
    from unnest(p_targets, v_slots, v_originals, v_due_at, v_replaces)
      with ordinality i(target, slot, original, due_at, replaces, n)
    group by i.target, i.slot
    order by i.target;
  else
    return query
    select unnest(v_targets.targets), unnest(v_ids), unnest(v_heads), unnest(v_counts), unnest(v_targets.namespaces),
      unnest(v_targets.tasks), null::integer[], null::uuid[], null::integer[], null::integer[]
    order by 1;
  end if;
end $$;

-- The slot of each message.
-- Parameters: per slot its target; per message its target. Result: slots. Locks: none.
create or replace function rouse.slots_of(p_target_at integer[], p_targets integer[]) returns integer[]
language plpgsql immutable
as $$
declare
  v_slot_of constant integer[] := array(
    select t.slot::integer from unnest(p_target_at) with ordinality t(target, slot) order by t.target);
begin
  return array(select v_slot_of[t.target] from unnest(p_targets) with ordinality t(target, n) order by t.n);
end $$;

-- Stores the ids of new messages that do not name their place: those of encrypted payloads.
-- Parameters: per slot partition id, seq of the first new message, number of new messages. Result: nothing.
-- Locks: none beyond the partitions, which the caller holds.
create or replace function rouse.remember_ids(p_partition_ids bigint[], p_heads bigint[], p_counts integer[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  insert into rouse.message_ids (id, partition_id, seq)
  select m.id, m.partition_id, m.seq
  from unnest(p_partition_ids, p_heads, p_counts) t(partition_id, head, added)
  join rouse.messages m on m.partition_id = t.partition_id and m.seq >= t.head and m.seq < t.head + t.added
  where starts_with(m.payload, 'enc1') and substr(m.id::text, 15, 1) <> '8'
  order by m.id
  on conflict do nothing;
end $$;
