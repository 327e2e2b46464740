-- Cron schedules. Nodes evaluate patterns and time zones; the database has the clock, and decides which node
-- fires a tick.

-- The schedules that are due.
-- Parameters: the maximum, and queues whose schedules are left out.
-- Result: one row per schedule, with the database's time; none in a copy (cluster.sql). The payload is included only if the node must
--   encrypt it. That is so if the queue is encrypted, if the queue does not exist and would be encrypted, or
--   if the stored payload is encrypted.
-- Locks: none.
create or replace function rouse.due_schedules(p_limit integer default 100, p_without text[] default '{}')
returns table (id bigint, name text, cron text, time_zone text, catch_up text, next_at timestamptz, now timestamptz,
  queue text, to_seal text)
language plpgsql stable
as $$
declare
  v_now constant timestamptz := rouse.now();
begin
  return query
  select s.id, s.name, s.cron, s.time_zone, s.catch_up, s.next_at, v_now, s.queue,
    case when starts_with(s.payload, 'enc1') or coalesce(q.encryption, (select rouse.encrypts_by_default()))
      then s.payload end
  from rouse.schedules s left join rouse.queues q on q.name = s.queue
  where s.next_at <= v_now and s.queue <> all (p_without) and not (select rouse.is_copy()) order by s.next_at, s.id limit p_limit;
end $$;

-- Fires ticks of a schedule, once in the whole cluster: pushes a message for each tick and advances the
-- schedule, atomically. A second caller finds that next_at has changed or that the row is locked, and does
-- nothing.
-- Parameters: the schedule, the next_at that the caller read, per tick the message's id and the tick's time,
--   and the new next_at. With encryption: the stored payload that the caller read, the payload of each tick,
--   and the payload to store from now on. If the payload was changed meanwhile, nothing happens and the
--   schedule stays due.
-- Result: wake hints; no row if another call was first, there was no tick to fire, or this is a copy.
-- Locks: the schedule with SKIP LOCKED, then as push. It waits at most 250 ms for each lock.
create or replace function rouse.fire_schedule(
  p_id bigint, p_seen timestamptz, p_message_ids uuid[], p_ticks timestamptz[], p_next timestamptz,
  p_seen_payload text default null, p_payloads text[] default null, p_stored text default null
) returns setof rouse.wake_hint
language plpgsql
set lock_timeout = '250ms'
as $$
declare
  v rouse.schedules;
  v_ticks constant integer := cardinality(p_ticks);
begin
  perform rouse.require_read_committed();
  if rouse.is_copy() then
    return;
  end if;
  select s.* into v from rouse.schedules s where s.id = p_id for no key update skip locked;
  if not found or v.next_at is distinct from p_seen or v.payload <> p_seen_payload then
    return;
  end if;
  -- barrier: schedule-locked
  update rouse.schedules s
  set next_at = p_next, last_at = coalesce(p_ticks[v_ticks], s.last_at), payload = coalesce(p_stored, s.payload)
  where s.id = p_id;
  if v_ticks = 0 then
    return;
  end if;
  return query
  select v.queue, r.partition, null::text, r.namespace, r.task, r.added::bigint
  from rouse.push_v2(array[v.queue], array[v.partition], array_fill(1, array[v_ticks]), p_message_ids,
    coalesce(p_payloads, array_fill(v.payload, array[v_ticks])), null, null,
    array(select rouse.schedule_headers(v.name, t.at, v.headers) from unnest(p_ticks) with ordinality t(at, n) order by t.n)) r
  where r.added > 0;
end $$;

-- The headers of a tick's message: the schedule and the tick's time, then the user's own.
-- Parameters: the schedule's name, the tick, the user's headers as JSON text or null. Result: JSON text.
-- Locks: none.
create or replace function rouse.schedule_headers(p_name text, p_tick timestamptz, p_headers text) returns text
language sql immutable
as $$
  select '{"schedule":' || to_json(p_name)::text || ',"scheduledAt":"'
    || to_char(p_tick at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'
    || case when p_headers ~ '^\s*\{\s*\}\s*$' then '}' else coalesce(',' || substr(ltrim(p_headers), 2), '}') end
$$;
