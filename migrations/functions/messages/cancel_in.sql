-- Cancels a scheduled message inside a user's own transaction: it is not delivered if the transaction commits.
-- Messages that are in the log are cancelled over HTTP: a user's transaction may not hold partitions and lanes, for
-- which pushes and pops would wait.
-- Parameters: the message's id. Result: whether it was scheduled; false if it was cancelled before, or there is
--   no such message. RS409 not_scheduled names the HTTP route. 42501 if role_grants does not allow the role to manage
--   any queue. A message of a queue that the role may not manage counts as missing: ids can be guessed.
-- Locks: its row of `scheduled`, until the end of the user's transaction; promotion and purge skip it.
create or replace function rouse.cancel(id uuid) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v rouse.scheduled;
  v_place record;
  v_queue text;
begin
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if exists (select from rouse.role_grants g where g.role = session_user) then
    if not exists (select from rouse.role_grants g where g.role = session_user and starts_with(g."grant", 'manage:')) then
      perform rouse.raise('42501', 'forbidden', format('role %s lacks the grant manage', session_user), '{"grant": "manage"}');
    end if;
    v_place := rouse.place_in_id(cancel.id);
    v_place := rouse.place_of(cancel.id, v_place.partition_id, v_place.seq);
    v_queue := coalesce(
      (select s.queue from rouse.scheduled s where s.message_id = cancel.id),
      (select q.name from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = v_place.partition_id),
      (select min(q.name) from rouse.dead_letters d join rouse.queues q on q.id = d.queue_id where d.message_id = cancel.id));
    begin
      perform rouse.require_role_grant('manage', v_queue);
    exception when insufficient_privilege then
      return false;
    end;
  end if;
  select s.* into v from rouse.scheduled s where s.message_id = cancel.id for update skip locked;
  if v.id is not null then
    return rouse.cancel_scheduled(cancel.id);
  end if;
  -- It may have been promoted meanwhile.
  v_place := rouse.place_in_id(cancel.id);
  v_place := rouse.place_of(cancel.id, v_place.partition_id, v_place.seq);
  if v_place.seq is not null or exists (select from rouse.scheduled s where s.message_id = cancel.id)
     or exists (select from rouse.dead_letters d where d.message_id = cancel.id) then
    perform rouse.raise('RS409', 'not_scheduled', format(
      'message %s is in the log, or is being promoted: cancel it with DELETE /api/v1/messages/%s', cancel.id, cancel.id));
  end if;
  return false;
end $$;

comment on function rouse.cancel(uuid) is
  'Cancels a scheduled message in this transaction. Returns whether it was scheduled. Other messages raise RS409: '
  'cancel them with DELETE /api/v1/messages/:id.';

-- The place that an id may name (see inspect/message_id.sql).
-- Parameters: the id. Result: partition and seq, nulls if it cannot be such an id. Locks: none.
create or replace function rouse.place_in_id(p_id uuid, out partition_id bigint, out seq bigint)
language plpgsql immutable
as $$
declare
  v_hex constant text := replace(p_id::text, '-', '');
  v_first constant text := ('x' || substr(v_hex, 14, 3))::bit(12)::text;
  v_rest constant text := ('x' || substr(v_hex, 17))::bit(64)::text;
  v_bits integer;
  v_place text;
begin
  v_bits := substr(v_first, 1, 6)::bit(6)::integer;
  v_place := substr(v_first, 7) || substr(v_rest, 3);
  if substr(v_hex, 13, 1) <> '7' or v_bits = 0 or v_bits > 63 or substr(v_place, 69 - v_bits, 1) <> '1'
     or length(ltrim(substr(v_place, 1, 68 - v_bits), '0')) not between 1 and 63 then
    return;
  end if;
  seq := lpad(substr(v_place, 69 - v_bits), 64, '0')::bit(64)::bigint;
  partition_id := lpad(ltrim(substr(v_place, 1, 68 - v_bits), '0'), 64, '0')::bit(64)::bigint;
end $$;
