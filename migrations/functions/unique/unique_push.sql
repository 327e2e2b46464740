-- Finds out what the unique keys of a push lead to, and replaces stored messages. Dedupe keys count first: the
-- repeat of a push is a duplicate of its first attempt, whatever holds the unique key by now.
-- Parameters: per slot (see push_general) queue, partition, the queue's delay and dedupe window in ms; per message
--   its slot, then as push; the time now.
-- Result: the keys as read_unique, then as decide_unique.
-- Locks: as lock_keys; if messages may be replaced, all lanes of their partitions and the lanes that the push will
--   wake, in one statement. The caller holds the partitions, share_keys, and if messages may be replaced, the
--   queues FOR SHARE.
create or replace function rouse.sort_unique(
  p_queue_ids integer[], p_partition_ids bigint[], p_queue_delays_ms bigint[], p_dedup_ms bigint[], p_slots integer[], p_ids uuid[],
  p_transaction_ids text[], inout payloads text[], inout headers text[], inout delays_ms bigint[], inout due_at timestamptz[],
  inout options text[], p_now timestamptz,
  out originals uuid[], out items integer[], out queue_ids integer[], out scopes bigint[], out keys text[], out windows_ms bigint[],
  out holders integer[], out replaces boolean[]
)
language plpgsql
as $$
declare
  v_keys record := rouse.read_unique(p_queue_ids, p_partition_ids, p_slots, options);
  v_locked record := rouse.lock_keys(v_keys.items, v_keys.queue_ids, v_keys.scopes, v_keys.keys, v_keys.conflicts, p_ids, p_now);
  v record;
begin
  items := v_keys.items;
  queue_ids := v_keys.queue_ids;
  scopes := v_keys.scopes;
  keys := v_keys.keys;
  windows_ms := v_keys.windows_ms;
  if cardinality(v_locked.partitions) > 0 then
    perform rouse.lock_lanes(p_partition_ids, null, false, v_locked.partitions);
  end if;
  -- barrier: unique-locked
  if p_transaction_ids is not null then
    originals := rouse.find_originals(p_partition_ids, p_dedup_ms, p_slots, p_ids, p_transaction_ids, p_now);
  end if;
  if v_locked.all_new then
    originals := coalesce(originals, array_fill(null::uuid, array[cardinality(p_ids)]));
    return;
  end if;
  v := rouse.decide_unique(items, queue_ids, scopes, keys, v_keys.conflicts, p_queue_delays_ms, p_slots, p_ids, payloads, headers, delays_ms,
    due_at, options, originals, p_now);
  payloads := v.payloads;
  headers := v.headers;
  delays_ms := v.delays_ms;
  due_at := v.due_at;
  options := v.options;
  originals := v.originals;
  holders := v.holders;
  replaces := v.replaces;
end $$;

-- Stores the holders of unique keys, once the places of the messages are known.
-- Parameters: the keys of read_unique; per message the position of the message of the call that holds its key
--   (null: none), the id of its original (of a message of the call: the stored id); per slot partition and head; per message its slot,
--   id and offset (null: it is not added to the log); the time now.
-- Result: per message the id of its original; if that was found by a unique key, as users see it.
-- Locks: none beyond the keys, which the caller holds.
create or replace function rouse.store_unique(
  p_items integer[], p_queue_ids integer[], p_scopes bigint[], p_keys text[], p_windows_ms bigint[], p_holders integer[],
  p_originals uuid[], p_partition_ids bigint[], p_heads bigint[], p_slots integer[], p_ids uuid[], p_offsets integer[], p_now timestamptz
) returns uuid[]
language plpgsql
set enable_hashjoin = on
as $$
declare
  v_seqs constant bigint[] := array(
    select p_heads[m.slot] + m.seq_offset from unnest(p_slots, p_offsets) with ordinality m(slot, seq_offset, n) order by m.n);
begin
  perform rouse.take_keys(p_items, p_queue_ids, p_scopes, p_keys, p_windows_ms, p_ids,
    array(select p_partition_ids[m.slot] from unnest(p_slots) with ordinality m(slot, n) order by m.n), v_seqs,
    array(select m.original is null from unnest(p_originals) with ordinality m(original, n) order by m.n), p_now);
  if p_holders is null then
    return p_originals;
  end if;
  return array(
    -- A message can be a duplicate, by its dedupe key, of a message of the call that is itself a duplicate.
    select coalesce(rouse.message_id(p_ids[h.n], p_partition_ids[p_slots[h.n]], v_seqs[h.n]), f.original, m.original)
    from unnest(p_originals, p_holders) with ordinality m(original, holder, n)
    left join unnest(p_ids, p_originals, p_holders) f(id, original, holder) on f.id = m.original and m.holder is null and f.original is not null
    cross join lateral (select coalesce(m.holder, f.holder) as n) h
    order by m.n);
end $$;

-- Decides which messages of a call are stored, and replaces what they replace. It goes through the messages in
-- the order of the request. The first message whose key is free becomes the holder of the key. For a message
-- whose key has a holder:
--   ignore   the message is a duplicate of the holder
--   reject   the call is refused
--   replace  the holder gets the payload and the headers of the message and, if it is scheduled, its due time
--            and options. If the holder has started, the message is stored and takes the key.
-- Parameters: the keys of read_unique; per slot (see push_general) the queue's delay in ms; per message its
--   slot, id, payload, headers, delay in ms, due time and options; which messages are duplicates by their dedupe
--   keys, with the ids of their originals: these do not count; the time now.
-- Result: payloads, headers, delays, due times and options, changed if messages of the call replace each
--   other; per message the id of its original; the position of its original, if that is a message of the call
--   that has no id yet; and whether it replaces its original.
-- Locks: none beyond the keys, lanes and scheduled messages, which the caller holds (lock_keys).
create or replace function rouse.decide_unique(
  p_items integer[], p_queue_ids integer[], p_scopes bigint[], p_keys text[], p_conflicts text[], p_queue_delays_ms bigint[],
  p_slots integer[], p_ids uuid[],
  inout payloads text[], inout headers text[], inout delays_ms bigint[], inout due_at timestamptz[], inout options text[],
  inout originals uuid[], p_now timestamptz, out holders integer[], out replaces boolean[]
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v record;
  v_key integer := 0;        -- the key of the message before, by its number
  v_holder integer;          -- the message of the call that holds the key
  v_refused integer;         -- the first message that must not be a duplicate, its key, and the holder if it is stored
  v_refused_key text;
  v_refused_by uuid;
  v_count integer := 0;      -- the stored messages that are replaced
  v_items integer[];         -- the last message of the call that replaces each
  v_known uuid[];            -- their ids and places
  v_partitions bigint[];
  v_seqs bigint[];
  v_last_key integer;        -- the key of the last of them
begin
  holders := array_fill(null::integer, array[cardinality(p_ids)]);
  replaces := array_fill(false, array[cardinality(p_ids)]);
  originals := coalesce(originals, array_fill(null::uuid, array[cardinality(p_ids)]));
  for v in
    with wanted as materialized (
      select u.n, u.queue_id, u.scope, u.key, u.conflict, u.place, dense_rank() over (order by u.queue_id, u.scope, u.key) as key_number
      from unnest(p_items, p_queue_ids, p_scopes, p_keys, p_conflicts) with ordinality u(n, queue_id, scope, key, conflict, place)
      where originals[u.n] is null
    ), held as materialized (
      select w.key_number, s.state, s.message_id, s.partition_id, s.seq
      from (select distinct w.key_number, w.queue_id, w.scope, w.key from wanted w) w
      join rouse.unique_keys k on k.queue_id = w.queue_id and k.partition_id = w.scope and k.key = w.key
      cross join lateral rouse.unique_state(k, p_now) s
    )
    select w.n, w.key, w.conflict, w.key_number, h.state, h.message_id, h.partition_id, h.seq
    from wanted w join held h using (key_number) order by w.key_number, w.place
  loop
    if v.key_number <> v_key then
      v_key := v.key_number;
      v_holder := null;
    end if;
    if v_holder is null and (v.state in ('free', 'ended') or (v.state = 'started' and v.conflict = 'replace')) then
      v_holder := v.n;
      continue;
    end if;
    if v.conflict = 'reject' then
      if v_refused is null or v.n < v_refused then
        v_refused := v.n;
        v_refused_key := v.key;
        v_refused_by := case when v_holder is null then v.message_id end;
      end if;
      continue;
    end if;
    holders[v.n] := v_holder;
    originals[v.n] := coalesce(p_ids[v_holder], v.message_id);
    replaces[v.n] := v.conflict = 'replace';
    continue when not replaces[v.n];
    if v_holder is null then
      if v_last_key is distinct from v_key then
        v_last_key := v_key;
        v_count := v_count + 1;
      end if;
      v_items[v_count] := v.n;
      v_known[v_count] := v.message_id;
      v_partitions[v_count] := v.partition_id;
      v_seqs[v_count] := v.seq;
    else
      if coalesce(due_at[v_holder], p_now + greatest(coalesce(delays_ms[v_holder], 0), p_queue_delays_ms[p_slots[v_holder]])
        * interval '1 millisecond') > p_now
      then
        if delays_ms is not null then
          delays_ms[v_holder] := delays_ms[v.n];
        end if;
        if due_at is not null then
          due_at[v_holder] := due_at[v.n];
        end if;
      end if;
      payloads[v_holder] := payloads[v.n];
      if headers is not null then
        headers[v_holder] := headers[v.n];
      end if;
      options[v_holder] := rouse.replaced_options(options[v_holder], options[v.n]);
    end if;
  end loop;
  if v_refused is not null then
    perform rouse.raise('RS409', 'unique_conflict', format('another message holds the unique key "%s"', v_refused_key),
      jsonb_strip_nulls(jsonb_build_object('item', v_refused, 'field', 'unique', 'key', v_refused_key, 'id', v_refused_by)));
  end if;
  if v_count > 0 then
    perform rouse.replace_messages(v_known, v_partitions, v_seqs, array_agg(payloads[r.n] order by r.at),
      array_agg(headers[r.n] order by r.at),
      array_agg(coalesce(due_at[r.n], p_now + greatest(coalesce(delays_ms[r.n], 0), p_queue_delays_ms[p_slots[r.n]]) * interval '1 millisecond')
        order by r.at),
      array_agg(options[r.n] order by r.at))
    from unnest(v_items) with ordinality r(n, at);
  end if;
end $$;

-- The options of a message that another one replaces: those of the other one, with its own unique key.
-- Parameters: the options of both. Result: options. Locks: none.
create or replace function rouse.replaced_options(p_old text, p_new text) returns text
language sql immutable
as $$
  select (p_new::jsonb || jsonb_build_object('unique', p_old::jsonb -> 'unique'))::text
$$;

-- Replaces stored messages that no group has been given.
-- Parameters: per message its id, as users see it, and its place in the log (null: it is scheduled); payload and
--   headers; the due time and the options, if it is scheduled.
-- Result: nothing. If a message is gone, RS001 is raised: the call is repeated and finds the key free.
-- Locks: the messages. The caller holds what keeps them from being delivered and promoted.
create or replace function rouse.replace_messages(
  p_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_payloads text[], p_headers text[], p_due_at timestamptz[], p_options text[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_in_log integer;
  v_scheduled integer;
begin
  update rouse.messages m set payload = r.payload, headers = r.headers
  from unnest(p_partition_ids, p_seqs, p_payloads, p_headers) r(partition_id, seq, payload, headers)
  where m.partition_id = r.partition_id and m.seq = r.seq;
  get diagnostics v_in_log = row_count;
  update rouse.scheduled s
  set payload = r.payload, headers = r.headers, due_at = r.due_at, options = rouse.replaced_options(s.options, r.options)
  from unnest(p_ids, p_seqs, p_payloads, p_headers, p_due_at, p_options) r(id, seq, payload, headers, due_at, options)
  where r.seq is null and s.message_id = r.id;
  get diagnostics v_scheduled = row_count;
  -- barrier: unique-replaced
  if v_in_log + v_scheduled < cardinality(p_ids) then
    perform rouse.raise('RS001', 'retry', 'a message was removed while it was replaced');
  end if;
end $$;
