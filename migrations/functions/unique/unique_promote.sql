-- Unique keys of SQL producers, which are checked when a message becomes due. The transaction of a producer may
-- stay open for hours, and must not hold a key all that time. Keys of messages from nodes were taken when these
-- were scheduled.

-- Decides which of the due messages of a partition are added to the log, and replaces what they replace.
-- Parameters: a locked partition; per message its id, dedupe key, payload, headers, origin, due time and options;
--   the time now.
-- Result: payloads and headers, changed if messages of the call replace each other; and the positions of the
--   messages to add.
-- Locks: the queue FOR SHARE, without waiting (55P03 if it is locked; promote_partition locks it before the
--   partition); then as sort_unique.
create or replace function rouse.sort_promoted(
  p_partition_id bigint, p_ids uuid[], p_keys text[], inout payloads text[], inout headers text[], p_origins text[],
  p_due_at timestamptz[], p_options text[], p_now timestamptz, out added integer[]
)
language plpgsql
as $$
declare
  v_slots constant integer[] := array_fill(1, array[cardinality(p_ids)]);
  v_queue rouse.queues;
  v_keys record;
  v_locked record;
  v_originals uuid[];
  v record;
begin
  select q.* into v_queue from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = p_partition_id
  for share of q nowait;
  v_keys := rouse.read_unique(array[v_queue.id], array[p_partition_id], v_slots,
    array(select case when m.origin = 'sql' then m.options end from unnest(p_origins, p_options) with ordinality m(origin, options, n) order by m.n));
  if v_keys.items is null then
    added := array(select generate_series(1, cardinality(p_ids)));
    return;
  end if;
  v_locked := rouse.lock_keys(v_keys.items, v_keys.queue_ids, v_keys.scopes, v_keys.keys, v_keys.conflicts, p_ids, p_now);
  if cardinality(v_locked.partitions) > 0 then
    perform rouse.lock_lanes(array[p_partition_id], null, false, v_locked.partitions);
  end if;
  -- barrier: promote-unique-locked
  v_originals := rouse.find_originals(array[p_partition_id], array[v_queue.dedup_window_ms], v_slots, p_ids,
    array(select case when m.origin = 'sql' then m.key end from unnest(p_origins, p_keys) with ordinality m(origin, key, n) order by m.n), p_now);
  if not v_locked.all_new then
    v := rouse.decide_unique(v_keys.items, v_keys.queue_ids, v_keys.scopes, v_keys.keys, v_keys.conflicts, '{0}', v_slots, p_ids,
      payloads, headers, null, p_due_at, p_options, v_originals, p_now);
    payloads := v.payloads;
    headers := v.headers;
    v_originals := v.originals;
  end if;
  perform rouse.take_keys(v_keys.items, v_keys.queue_ids, v_keys.scopes, v_keys.keys, v_keys.windows_ms, p_ids, null, null,
    array(select o.original is null from unnest(v_originals) with ordinality o(original, n) order by o.n), p_now);
  added := array(select o.n::integer from unnest(v_originals) with ordinality o(original, n) where o.original is null order by o.n);
end $$;

-- Whether a partition has due messages of SQL producers with unique keys.
-- Parameters: queue, partition, the maximum number of rows that the caller promotes, the time. Result: a boolean.
-- Locks: none.
create or replace function rouse.has_unique_due(p_queue text, p_partition text, p_limit integer, p_now timestamptz) returns boolean
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_sort = off
as $$
begin
  return exists (
    select from (
      select s.origin, s.options from rouse.scheduled s
      where s.queue = p_queue and s.partition = p_partition and s.due_at <= p_now
      order by s.due_at, s.id limit p_limit
    ) s
    where s.origin = 'sql' and s.options::json -> 'unique' is not null);
end $$;

-- Checks the unique key of a SQL producer.
-- Parameters: the key as given; null: none. Result: nothing; RS400 with the field. Locks: none.
create or replace function rouse.check_unique(p_unique jsonb) returns void
language plpgsql immutable
as $$
declare
  v_field text;
begin
  if p_unique is null or p_unique = 'null' then
    return;
  end if;
  if jsonb_typeof(p_unique) <> 'object' then
    perform rouse.refuse_unique('unique', 'must be an object: {"key": "…"}');
  end if;
  for v_field in select k from jsonb_object_keys(p_unique) k order by k loop
    if v_field not in ('key', 'scope', 'until', 'onConflict') then
      perform rouse.raise('RS400', 'unknown_field', format('unknown field unique.%s; the fields are key, scope, until and onConflict', v_field),
        jsonb_build_object('field', 'unique.' || v_field));
    end if;
  end loop;
  if jsonb_typeof(p_unique -> 'key') is distinct from 'string' then
    perform rouse.refuse_unique('unique.key', 'must be a string');
  end if;
  perform rouse.check_name('unique.key', p_unique ->> 'key');
  if coalesce(nullif(p_unique -> 'scope', 'null'), '"queue"') not in ('"queue"', '"partition"') then
    perform rouse.refuse_unique('unique.scope', 'must be "queue" or "partition"');
  end if;
  if coalesce(nullif(p_unique -> 'until', 'null'), '"completed"') <> '"completed"'
     and not (jsonb_typeof(p_unique -> 'until') = 'object' and (p_unique -> 'until') - 'windowMs' = '{}'
       and coalesce(p_unique #>> '{until,windowMs}', '') ~ '^[1-9][0-9]{0,11}$'
       and (p_unique #>> '{until,windowMs}')::bigint <= 31536000000) then
    perform rouse.refuse_unique('unique.until', 'must be "completed", or {"windowMs": n} with n from 1 to 31536000000');
  end if;
  if p_unique ->> 'onConflict' = 'reject' then
    perform rouse.refuse_unique('unique.onConflict', 'cannot be "reject" here, because the key is checked when the message is due; push it over HTTP');
  elsif coalesce(nullif(p_unique -> 'onConflict', 'null'), '"ignore"') not in ('"ignore"', '"replace"') then
    perform rouse.refuse_unique('unique.onConflict', 'must be "ignore" or "replace"');
  end if;
end $$;

-- Raises the error for a unique key.
-- Parameters: the field, what is wrong. Result: never returns. Locks: none.
create or replace function rouse.refuse_unique(p_field text, p_problem text) returns void
language plpgsql
as $$
begin
  perform rouse.raise('RS400', 'invalid_request', p_field || ' ' || p_problem, jsonb_build_object('field', p_field));
end $$;
