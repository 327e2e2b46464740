-- Enqueues a message from inside a user's own transaction: delivered after COMMIT, never after ROLLBACK.
-- It takes no lock on the queue or the partition, so the transaction may stay open as long as it likes.
-- Parameters: queue, payload, partition, a delay or an absolute time, transaction id (the dedup key), headers, trace id.
-- Result: the message's id.
-- Locks: none.
create or replace function rouse.enqueue(
  queue text, payload json, partition text default 'Default', delay interval default null, run_at timestamptz default null,
  transaction_id text default null, headers json default null, trace_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid := pg_catalog.uuidv7();
  v_now timestamptz := rouse.now();
begin
  perform rouse.check_name('queue', queue);
  perform rouse.check_name('partition', partition);
  if transaction_id is not null then
    perform rouse.check_name('transactionId', transaction_id);
  end if;
  if payload is null then
    perform rouse.raise('RS400', 'invalid_payload', 'a message wants a payload; for JSON null write ''null''::json', '{"field": "payload"}');
  end if;
  if octet_length(payload::text) > 1048576 then
    perform rouse.raise('RS400', 'payload_too_large', 'a payload is at most 1 MiB', '{"field": "payload"}');
  end if;
  if headers is not null and json_typeof(headers) <> 'object' then
    perform rouse.raise('RS400', 'invalid_headers', 'headers must be an object', '{"field": "headers"}');
  end if;
  if delay < interval '0' then
    perform rouse.raise('RS400', 'invalid_delay', 'a delay cannot be negative', '{"field": "delay"}');
  end if;
  if exists (select from rouse.queues q where q.name = enqueue.queue and q.encryption) then
    perform rouse.refuse_plaintext(enqueue.queue);
  end if;
  insert into rouse.scheduled (queue, partition, due_at, message_id, transaction_id, trace_id, payload, headers, origin, created_at)
  values (enqueue.queue, enqueue.partition, greatest(v_now, coalesce(enqueue.run_at, v_now + enqueue.delay, v_now)), v_id,
    enqueue.transaction_id, enqueue.trace_id, enqueue.payload::text, enqueue.headers::text, 'sql', v_now);
  return v_id;
end $$;

-- Tells listening nodes that SQL producers scheduled something: one NOTIFY a statement, its payload the earliest due
-- time in epoch ms (0: now), so that equal wakes merge. Rows of the broker never notify.
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

-- Tells the nodes that listen, unless the server is set not to (ROUSE_NOTIFY=off).
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

-- Only where it is missing: to replace a trigger would wait for every open transaction that has called enqueue.
do $$
begin
  if not exists (select from pg_trigger where tgrelid = 'rouse.scheduled'::regclass and tgname = 'scheduled_notifies') then
    create trigger scheduled_notifies after insert on rouse.scheduled
    referencing new table as added for each statement execute function rouse.notify_scheduled();
  end if;
end $$;
