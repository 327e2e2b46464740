-- Enqueues several messages inside a user's own transaction, with one call; otherwise as enqueue.
-- Parameters: an array of at most 10,000 objects with the fields of an item of POST /api/v1/push: queue and
--   payload, and optionally partition, delayMs or runAt, dedupeKey (or transactionId), headers, traceId,
--   priority, retryLimit, retryBackoffMs (a number or a list), ttlMs, unique. null means absent, except as the
--   payload.
-- Result: the messages' ids, in the order of the array. An invalid message raises RS400 with its position, and
--   nothing is stored.
-- Locks: none.
create or replace function rouse.enqueue_many(messages jsonb) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message jsonb;
  v_index integer := 0;
  v_text text;
  v_detail text;
begin
  if jsonb_typeof(messages) is distinct from 'array' then
    perform rouse.raise('RS400', 'invalid_request', 'messages must be a JSON array', '{"field": "messages"}');
  end if;
  if jsonb_array_length(messages) > 10000 then
    perform rouse.raise('RS400', 'invalid_request', 'a call takes at most 10000 messages', '{"field": "messages"}');
  end if;
  for v_message in select e.value from jsonb_array_elements(messages) with ordinality e order by e.ordinality loop
    perform rouse.check_enqueued(v_message);
    return next rouse.schedule_message(
      v_message->>'queue', (v_message->'payload')::text, v_message->>'partition',
      (v_message->>'delayMs')::float8 * interval '1 millisecond', (v_message->>'runAt')::timestamptz,
      coalesce(v_message->>'dedupeKey', v_message->>'transactionId'), nullif(v_message->'headers', 'null')::text,
      v_message->>'traceId', (v_message->>'priority')::integer, rouse.options_in(v_message));
    v_index := v_index + 1;
  end loop;
exception
  when sqlstate 'RS400' or data_exception then
    get stacked diagnostics v_text = message_text, v_detail = pg_exception_detail;
    v_detail := case when v_detail like '{%' then v_detail else '{"code": "invalid_request", "field": ""}' end;
    perform rouse.raise('RS400', v_detail::jsonb->>'code', case when v_detail::jsonb->>'field' = 'messages' then v_text
      else format('messages[%s]: %s', v_index, v_text) end, v_detail::jsonb || jsonb_build_object('field',
      case when v_detail::jsonb->>'field' = 'messages' then 'messages'
      else rtrim(format('messages[%s].%s', v_index, v_detail::jsonb->>'field'), '.') end));
end $$;

comment on function rouse.enqueue_many(jsonb) is
  'Enqueues the messages of a JSON array in this transaction: [{"queue": …, "payload": …, "partition": …, "delayMs": …, '
  '"runAt": …, "dedupeKey": …, "headers": …, "traceId": …, "priority": …, "retryLimit": …, "retryBackoffMs": …, "ttlMs": …}]. '
  'Returns their ids, in order.';

-- The options in a message of enqueue_many.
-- Parameters: the message. Result: an object (see message_options.sql), null if there are none. Locks: none.
create or replace function rouse.options_in(p_message jsonb) returns jsonb
language sql immutable
as $$
  select jsonb_object_agg(e.key, case when e.key = 'retryBackoffMs' and jsonb_typeof(e.value) = 'number' then jsonb_build_array(e.value) else e.value end)
  from jsonb_each(p_message) e
  where e.key in ('retryLimit', 'retryBackoffMs', 'ttlMs', 'unique') and e.value <> 'null'
$$;

-- Checks the fields of one message of enqueue_many; schedule_message checks their values.
-- Parameters: the message. Result: nothing; an unknown field, or one of another type, raises RS400.
-- Locks: none.
create or replace function rouse.check_enqueued(p_message jsonb) returns void
language plpgsql immutable
as $$
declare
  v_types constant jsonb := '{"queue": "string", "partition": "string", "delayMs": "number", "runAt": "string",
    "dedupeKey": "string", "transactionId": "string", "headers": "object", "traceId": "string",
    "priority": "number", "retryLimit": "number", "retryBackoffMs": "number or array", "ttlMs": "number", "unique": "object"}';
  v_field text;
  v_type text;
begin
  if jsonb_typeof(p_message) <> 'object' then
    perform rouse.raise('RS400', 'invalid_request', 'a message must be an object', '{"field": ""}');
  end if;
  for v_field, v_type in select e.key, jsonb_typeof(e.value) from jsonb_each(p_message) e where e.key <> 'payload' loop
    if not v_types ? v_field then
      perform rouse.raise('RS400', 'unknown_field', format('unknown field %s', v_field), jsonb_build_object('field', v_field));
    end if;
    if v_type <> 'null' and v_type <> all (string_to_array(v_types->>v_field, ' or ')) then
      perform rouse.raise('RS400', case v_field when 'headers' then 'invalid_headers' else 'invalid_request' end,
        format('%s must be of type %s, not %s', v_field, v_types->>v_field, v_type), jsonb_build_object('field', v_field));
    end if;
  end loop;
end $$;
