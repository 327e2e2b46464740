-- Enqueues a message inside a user's own transaction: delivered after COMMIT, never after ROLLBACK. It does
-- not lock the queue or the partition, so the transaction may stay open as long as necessary. There is one
-- function per payload type: text, json and jsonb. A literal or an untyped parameter resolves to the one for
-- text, because PostgreSQL prefers that type. Headers are json, or jsonb if the payload is jsonb.
-- Parameters: queue, payload, partition (null: the message is independent, or goes to `Default` if the queue's
--   ordering is not keyed), a delay or an absolute time, dedupe key, headers, trace id, priority from 0 to 9,
--   retry limit, retry delays and time to live instead of the queue's, unique key, and the older name of the
--   dedupe key.
-- Result: the message's id; 42501 if role_grants does not allow it. Locks: none.
create or replace function rouse.enqueue(
  queue text, payload text, partition text default null, delay interval default null, run_at timestamptz default null,
  dedupe_key text default null, headers json default null, trace_id text default null, priority integer default 0,
  retry_limit integer default null, retry_backoff_ms bigint[] default null, ttl_ms bigint default null, "unique" jsonb default null,
  transaction_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  begin
    perform payload::json;
  exception when data_exception or statement_too_complex then
    get stacked diagnostics v_problem = pg_exception_detail;
    perform rouse.raise('RS400', 'invalid_payload',
      concat_ws(' ', 'a payload given as text must be JSON (a string in double quotes).', v_problem), '{"field": "payload"}');
  end;
  return rouse.schedule_message(queue, payload, partition, delay, run_at,
    case when dedupe_key is null or transaction_id is null then coalesce(dedupe_key, transaction_id) else rouse.one_key(dedupe_key, transaction_id) end,
    headers::text, trace_id, priority,
    case when retry_limit is null and retry_backoff_ms is null and ttl_ms is null and "unique" is null then null
      else rouse.options_of(retry_limit, retry_backoff_ms, ttl_ms, "unique") end);
end $$;

-- The same with a payload of type json.
-- Parameters and result: as above. Locks: none.
create or replace function rouse.enqueue(
  queue text, payload json, partition text default null, delay interval default null, run_at timestamptz default null,
  dedupe_key text default null, headers json default null, trace_id text default null, priority integer default 0,
  retry_limit integer default null, retry_backoff_ms bigint[] default null, ttl_ms bigint default null, "unique" jsonb default null,
  transaction_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return rouse.schedule_message(queue, payload::text, partition, delay, run_at,
    case when dedupe_key is null or transaction_id is null then coalesce(dedupe_key, transaction_id) else rouse.one_key(dedupe_key, transaction_id) end,
    headers::text, trace_id, priority,
    case when retry_limit is null and retry_backoff_ms is null and ttl_ms is null and "unique" is null then null
      else rouse.options_of(retry_limit, retry_backoff_ms, ttl_ms, "unique") end);
end $$;

-- The same with a payload of type jsonb.
-- Parameters and result: as above. Locks: none.
create or replace function rouse.enqueue(
  queue text, payload jsonb, partition text default null, delay interval default null, run_at timestamptz default null,
  dedupe_key text default null, headers jsonb default null, trace_id text default null, priority integer default 0,
  retry_limit integer default null, retry_backoff_ms bigint[] default null, ttl_ms bigint default null, "unique" jsonb default null,
  transaction_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return rouse.schedule_message(queue, payload::text, partition, delay, run_at,
    case when dedupe_key is null or transaction_id is null then coalesce(dedupe_key, transaction_id) else rouse.one_key(dedupe_key, transaction_id) end,
    headers::text, trace_id, priority,
    case when retry_limit is null and retry_backoff_ms is null and ttl_ms is null and "unique" is null then null
      else rouse.options_of(retry_limit, retry_backoff_ms, ttl_ms, "unique") end);
end $$;

comment on function rouse.enqueue(text, text, text, interval, timestamptz, text, json, text, integer, integer, bigint[], bigint, jsonb, text) is
  'Enqueues a message in this transaction; it is delivered after COMMIT. The payload is JSON text. Returns its id.';
comment on function rouse.enqueue(text, json, text, interval, timestamptz, text, json, text, integer, integer, bigint[], bigint, jsonb, text) is
  'Enqueues a message in this transaction; it is delivered after COMMIT. The payload is json. Returns its id.';
comment on function rouse.enqueue(text, jsonb, text, interval, timestamptz, text, jsonb, text, integer, integer, bigint[], bigint, jsonb, text) is
  'Enqueues a message in this transaction; it is delivered after COMMIT. The payload is jsonb. Returns its id.';

-- The dedupe key of a message, under its present or its older name.
-- Parameters: dedupe_key and transaction_id of enqueue. Result: the key, or null. Locks: none.
create or replace function rouse.one_key(p_dedupe_key text, p_transaction_id text) returns text
language plpgsql immutable
as $$
begin
  if p_dedupe_key <> p_transaction_id then
    perform rouse.raise('RS400', 'invalid_request', 'dedupe_key and transaction_id differ', '{"field": "dedupeKey"}');
  end if;
  return coalesce(p_dedupe_key, p_transaction_id);
end $$;

-- The options of a message of enqueue.
-- Parameters: those of enqueue. Result: an object (see message_options.sql), null if there are none. Locks: none.
create or replace function rouse.options_of(p_retry_limit integer, p_retry_backoff_ms bigint[], p_ttl_ms bigint, p_unique jsonb) returns jsonb
language sql immutable
as $$
  select nullif(jsonb_strip_nulls(jsonb_build_object('retryLimit', p_retry_limit, 'ttlMs', p_ttl_ms))
    -- Not stripped: check_message_options refuses a null inside them.
    || case when p_retry_backoff_ms is not null then jsonb_build_object('retryBackoffMs', p_retry_backoff_ms) else '{}' end
    || case when p_unique is not null then jsonb_build_object('unique', p_unique) else '{}' end, '{}')
$$;

-- Checks a message of a SQL producer and stores it until promotion. Only enqueue and enqueue_many call it, with
-- a pinned search path. Messages of one transaction keep the order of their calls even if the clock steps back: a call
-- never uses an earlier time than the previous call. The setting rouse.enqueued_us keeps that time until the
-- transaction ends.
-- Parameters: as enqueue, with payload and headers as JSON text, the options as an object (null: none).
-- Result: the message's id. Locks: none.
create or replace function rouse.schedule_message(
  p_queue text, p_payload text, p_partition text, p_delay interval, p_run_at timestamptz, p_transaction_id text, p_headers text,
  p_trace_id text, p_priority integer, p_options jsonb
) returns uuid
language plpgsql
as $$
declare
  v_id constant uuid := rouse.uuid_v7();
  v_last_us constant bigint := nullif(current_setting('rouse.enqueued_us', true), '');
  v_now timestamptz := rouse.now();
  v_us bigint := extract(epoch from v_now) * 1000000;
  v_queue record;
  v_partition text;
  v_setting text;
begin
  perform rouse.check_name('queue', p_queue);
  perform rouse.require_role_grant('push', p_queue);
  if p_partition is not null then
    perform rouse.check_name('partition', p_partition);
  end if;
  if p_transaction_id is not null then
    perform rouse.check_name('transactionId', p_transaction_id);
  end if;
  if p_trace_id is not null then
    perform rouse.check_name('traceId', p_trace_id);
  end if;
  if p_payload is null then
    perform rouse.raise('RS400', 'invalid_payload', 'a message needs a payload; JSON null is ''null''', '{"field": "payload"}');
  end if;
  if octet_length(p_payload) > 1048576 then
    perform rouse.raise('RS400', 'payload_too_large', 'a payload must be at most 1 MiB', '{"field": "payload"}');
  end if;
  if octet_length(p_headers) > 65536 then
    perform rouse.raise('RS400', 'payload_too_large', 'headers must be at most 64 KiB', '{"field": "headers"}');
  end if;
  if json_typeof(p_headers::json) <> 'object' then
    perform rouse.raise('RS400', 'invalid_headers', 'headers must be an object', '{"field": "headers"}');
  end if;
  if p_delay is not null and p_run_at is not null then
    perform rouse.raise('RS400', 'invalid_delay', 'give either delay or run_at, not both', '{"field": "delay"}');
  end if;
  if p_delay < interval '0' then
    perform rouse.raise('RS400', 'invalid_delay', 'a delay cannot be negative', '{"field": "delay"}');
  end if;
  if p_priority <> 0 or p_options is not null then
    perform rouse.check_message_options(p_priority, p_partition, p_options);
  end if;
  select q.ordering, q.encryption into v_queue from rouse.queues q where q.name = p_queue;
  if v_queue.encryption then
    perform rouse.refuse_plaintext(p_queue);
  end if;
  v_partition := rouse.partition_of(v_queue.ordering, p_partition);
  if v_partition is null then
    -- The queue does not exist yet. If it is created with another ordering, the message stays in this partition.
    v_partition := rouse.partition_of(rouse.resolve_options('{}') ->> 'ordering', null);
  end if;
  if p_priority > 0 then
    if coalesce(v_queue.ordering, rouse.resolve_options('{}') ->> 'ordering') = 'partition' then
      perform rouse.refuse_priority(p_queue);
    end if;
    v_partition := chr(31) || p_priority;
  end if;
  if v_us < v_last_us then
    v_now := v_now + (v_last_us - v_us) * interval '1 microsecond';
  elsif v_us is distinct from v_last_us then
    v_setting := set_config('rouse.enqueued_us', v_us::text, true);
  end if;
  insert into rouse.scheduled (queue, partition, due_at, message_id, transaction_id, trace_id, payload, headers, origin, created_at, options)
  values (p_queue, v_partition, greatest(v_now, coalesce(p_run_at, v_now + p_delay, v_now)), v_id,
    p_transaction_id, p_trace_id, p_payload, p_headers, 'sql', v_now, p_options::text);
  return v_id;
end $$;

-- Checks the priority and the options of a message of a SQL producer.
-- Parameters: priority, partition and options as in schedule_message. Result: nothing; or RS400. Locks: none.
create or replace function rouse.check_message_options(p_priority integer, p_partition text, p_options jsonb) returns void
language plpgsql immutable
as $$
declare
  v record;
begin
  if p_priority not between 0 and 9 then
    perform rouse.raise('RS400', 'invalid_request', 'priority must be an integer from 0 to 9', '{"field": "priority"}');
  end if;
  if p_priority > 0 and p_partition is not null then
    perform rouse.raise('RS400', 'invalid_request', 'priority is not possible with a partition', '{"field": "priority"}');
  end if;
  for v in
    select r.* from (values ('retryLimit', 'integer', 0, 1000::numeric), ('retryBackoffMs', 'ladder', 0, 604800000), ('ttlMs', 'integer', 1, 3153600000000))
      r(name, kind, least_value, most_value)
    where p_options ? r.name and not rouse.option_fits(p_options -> r.name, r.kind, r.least_value, r.most_value)
  loop
    perform rouse.raise('RS400', 'invalid_request', format(case v.kind when 'ladder' then '%s must be a list of 1 to 50 integers from %s to %s'
      else '%s must be an integer from %s to %s' end, v.name, v.least_value, v.most_value), jsonb_build_object('field', v.name));
  end loop;
  if p_options ? 'unique' then
    perform rouse.check_unique(p_options -> 'unique');
  end if;
end $$;

-- Notifies listening nodes that SQL producers scheduled something: one NOTIFY per statement, with the
-- earliest due time in ms since 1970. If that time has come, the NOTIFY carries 0 instead, so that the
-- notifications are equal and PostgreSQL merges them. Rows that nodes insert (origin `broker`) do not notify.
-- Parameters: none (trigger). Result: none. Locks: none.
create or replace function rouse.notify_scheduled() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due timestamptz;
begin
  select min(due_at) into v_due from added where origin = 'sql';
  if v_due is not null then
    perform rouse.notify_nodes(case when v_due <= rouse.now() then '0' else rouse.epoch_ms(v_due)::bigint::text end);
  end if;
  return null;
end $$;

-- Notifies listening nodes, unless ROUSE_NOTIFY=off.
-- Parameters: the due time as text, 0 for now. Result: nothing. Locks: none.
create or replace function rouse.notify_nodes(p_due text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if (select d.notify from rouse.server_defaults d) then
    perform pg_notify('rouse_scheduled', p_due);
  end if;
end $$;

-- Created only if missing: replacing a trigger would wait for every open transaction that has called enqueue.
do $$
begin
  if not exists (select from pg_trigger where tgrelid = 'rouse.scheduled'::regclass and tgname = 'scheduled_notifies') then
    create trigger scheduled_notifies after insert on rouse.scheduled
    referencing new table as added for each statement execute function rouse.notify_scheduled();
  end if;
end $$;
