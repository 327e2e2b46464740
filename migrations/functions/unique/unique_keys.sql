-- Unique keys of a call: reads them, locks them, and stores their new holders.
--
-- The order: all keys of a call are locked in one sorted pass, after the partitions and before the lanes. Then
-- unique_push.sql decides, and take_keys stores. A key that is not in the table yet is inserted without a
-- holder, and is free.

-- Whether any message of a call has a unique key.
-- Parameters: per message its options. Result: a boolean. Locks: none.
create or replace function rouse.has_unique(p_options text[]) returns boolean
language sql immutable
as $$
  select exists (select from unnest(p_options) o where o::json -> 'unique' is not null)
$$;

-- Whether any message of a call may replace another one.
-- Parameters: per message its options. Result: a boolean. Locks: none.
create or replace function rouse.may_replace(p_options text[]) returns boolean
language sql immutable
as $$
  select exists (select from unnest(p_options) o where o::json #>> '{unique,onConflict}' = 'replace')
$$;

-- Excludes purges of these queues until the transaction ends: a purge frees all keys. An advisory lock instead of
-- a lock on the queue, because many short shared locks of a row can keep out a purge for ever.
-- Parameters: queue names. Result: nothing. Locks: an advisory lock per queue, before any other lock.
create or replace function rouse.share_keys(p_queues text[]) returns void
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock_shared(k.id)
  from (select distinct rouse.keys_lock(q) as id from unnest(p_queues) q order by 1) k;
end $$;

-- The advisory lock of the unique keys of a queue.
-- Parameters: the queue. Result: its number. Locks: none.
create or replace function rouse.keys_lock(p_queue text) returns bigint
language sql immutable
as $$
  select hashtextextended('unique keys of ' || p_queue, 1)
$$;

-- Reads the unique keys of a call from its options.
-- Parameters: per slot (see push_general) queue and partition; per message its slot and its options. The field
--   `at` of a key is the place of its message in the request, if the call has another order.
-- Result: arrays per message with a key, in the order of the request: its position in the call, the queue, the scope (see the table), the
--   key, the window in ms (null: until it ends), and what happens if another message holds the key. All are null
--   if no message has a key.
-- Locks: none.
create or replace function rouse.read_unique(
  p_queue_ids integer[], p_partition_ids bigint[], p_slots integer[], p_options text[],
  out items integer[], out queue_ids integer[], out scopes bigint[], out keys text[], out windows_ms bigint[], out conflicts text[]
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  select array_agg(u.n::integer order by u.at, u.n), array_agg(p_queue_ids[u.slot] order by u.at, u.n),
    array_agg(case when u.fields ->> 'scope' is distinct from 'partition' then 0
      when exists (select from rouse.partitions p where p.id = p_partition_ids[u.slot] and rouse.shown_partition(p.name) is null) then -1
      else p_partition_ids[u.slot] end order by u.at, u.n),
    array_agg(u.fields ->> 'key' order by u.at, u.n),
    array_agg((u.fields #>> '{until,windowMs}')::bigint order by u.at, u.n),
    array_agg(coalesce(u.fields ->> 'onConflict', 'ignore') order by u.at, u.n)
  into items, queue_ids, scopes, keys, windows_ms, conflicts
  from (
    select m.n, m.slot, m.options::json -> 'unique' as fields, (m.options::json #>> '{unique,at}')::integer as at
    from unnest(p_slots, p_options) with ordinality m(slot, options, n)
    where m.options is not null
  ) u
  where u.fields is not null;
end $$;

-- Locks the unique keys of a call. Messages that the call may replace must be neither promoted nor delivered
-- meanwhile: this function locks the scheduled ones, and its caller the lanes of the others.
-- Parameters: the keys of read_unique; the ids of the messages of the call; the time now.
-- Result: the partitions whose lanes the caller must lock before it decides; and whether all keys were new and
--   different, so that nothing needs a decision.
-- Locks: keys by (queue, scope, key); rows of scheduled messages that the call may replace, with SKIP LOCKED:
--   if one is locked, RS001 is raised. Waiting for it would deadlock with a promotion that wants a key.
create or replace function rouse.lock_keys(
  p_items integer[], p_queue_ids integer[], p_scopes bigint[], p_keys text[], p_conflicts text[], p_ids uuid[], p_now timestamptz,
  out partitions bigint[], out all_new boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_count integer;
  v_scheduled uuid[];
begin
  if 'replace' = any (p_conflicts) then
    perform rouse.check_replaceable(p_items, p_queue_ids, p_conflicts);
  end if;
  insert into rouse.unique_keys as k (queue_id, partition_id, key, message_id, expires_at)
  select distinct on (u.queue_id, u.scope, u.key) u.queue_id, u.scope, u.key, p_ids[u.n], '-infinity'
  from unnest(p_items, p_queue_ids, p_scopes, p_keys) u(n, queue_id, scope, key)
  order by u.queue_id, u.scope, u.key, u.n
  -- Locks the row without changing it.
  on conflict on constraint unique_keys_pkey do update set expires_at = k.expires_at where false;
  get diagnostics v_count = row_count;
  partitions := '{}';
  all_new := v_count = cardinality(p_items);
  -- barrier: unique-keys-locked
  if all_new or 'replace' <> all (p_conflicts) then
    return;
  end if;
  -- A new statement, which sees what was committed before the locks.
  select array_agg(distinct s.partition_id) filter (where s.partition_id is not null and s.state <> 'free'),
    array_agg(distinct s.message_id) filter (where s.state = 'scheduled')
  into partitions, v_scheduled
  from (select distinct u.queue_id, u.scope, u.key from unnest(p_queue_ids, p_scopes, p_keys, p_conflicts) u(queue_id, scope, key, conflict)
    where u.conflict = 'replace') u
  join rouse.unique_keys k on k.queue_id = u.queue_id and k.partition_id = u.scope and k.key = u.key
  cross join lateral rouse.unique_state(k, p_now) s;
  partitions := coalesce(partitions, '{}');
  if v_scheduled is not null then
    with locked as (
      select s.id from rouse.scheduled s where s.message_id = any (v_scheduled) order by s.id for update skip locked
    )
    select count(*) into v_count from locked;
    if v_count < cardinality(v_scheduled) then
      perform rouse.raise('RS001', 'retry', 'a message was promoted while it was replaced');
    end if;
  end if;
  -- barrier: unique-scheduled-locked
end $$;

-- The same for the pushes of a transaction, which locks the keys before the lanes of its acks.
-- Parameters: the targets and messages, as push; the targets exist and are locked.
-- Result: the partitions whose lanes the caller must lock. Locks: as lock_keys.
create or replace function rouse.lock_keys_of_push(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_options text[]
) returns bigint[]
language plpgsql
as $$
declare
  v_targets record := rouse.find_targets(p_queues, rouse.name_partitions(p_queues, p_partitions, p_targets));
  v_keys record := rouse.read_unique(v_targets.queue_ids, v_targets.partition_ids, rouse.slots_of(v_targets.targets, p_targets), p_options);
begin
  return (rouse.lock_keys(v_keys.items, v_keys.queue_ids, v_keys.scopes, v_keys.keys, v_keys.conflicts, p_ids, rouse.now())).partitions;
end $$;

-- Refuses to replace messages of an encrypted queue: a payload opens only under the id that it was sealed with.
-- Parameters: as lock_keys. Result: nothing; the error names the first item. Locks: none.
create or replace function rouse.check_replaceable(p_items integer[], p_queue_ids integer[], p_conflicts text[]) returns void
language plpgsql stable
as $$
declare
  v record;
begin
  select u.n, q.name into v
  from unnest(p_items, p_queue_ids, p_conflicts) u(n, queue_id, conflict) join rouse.queues q on q.id = u.queue_id
  where u.conflict = 'replace' and q.encryption order by u.n limit 1;
  if found then
    perform rouse.raise('RS400', 'invalid_request',
      format('queue "%s" is encrypted: unique.onConflict cannot be "replace", because a payload opens only with its own id', v.name),
      jsonb_build_object('field', 'unique.onConflict', 'item', v.n));
  end if;
end $$;

-- Makes messages the holders of their unique keys.
-- Parameters: the keys of read_unique; per message of the call its stored id, its place in the log (null: it is
--   scheduled, or has just been promoted), and whether it was stored; the time now. Result: nothing.
-- Locks: none beyond the keys, which the caller holds.
create or replace function rouse.take_keys(
  p_items integer[], p_queue_ids integer[], p_scopes bigint[], p_keys text[], p_windows_ms bigint[],
  p_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_stored boolean[], p_now timestamptz
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  update rouse.unique_keys k
  set message_id = case when u.seq is null then rouse.id_without_place(u.id) else u.id end,
    holder_partition = case when u.seq is not null then u.holder_partition end, seq = u.seq, window_ms = u.window_ms,
    expires_at = coalesce(p_now + u.window_ms * interval '1 millisecond', 'infinity'),
    purges = (select q.purges from rouse.queues q where q.id = u.queue_id)
  from (
    select u.queue_id, u.scope, u.key, u.window_ms, p_ids[u.n] as id, p_partition_ids[u.n] as holder_partition, p_seqs[u.n] as seq
    from unnest(p_items, p_queue_ids, p_scopes, p_keys, p_windows_ms) u(n, queue_id, scope, key, window_ms)
    where p_stored[u.n]
    offset 0
  ) u
  where k.queue_id = u.queue_id and k.partition_id = u.scope and k.key = u.key;
end $$;
