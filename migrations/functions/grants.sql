-- Privileges: producers may call enqueue, enqueue_many and ack_in, nothing else. This file is applied last. In earlier
-- releases, enqueue existed only for payloads of type json. A role that was granted that function also gets
-- enqueue for text and for jsonb, because a call with a literal payload now resolves to the one for text, and
-- enqueue_many.
-- Parameters: none. Result: none. Locks: none.
revoke execute on all functions in schema rouse from public;
do $$
declare
  v_role regrole;
begin
  if exists (select from pg_roles where rolname = 'rouse_producer') then
    grant usage on schema rouse to rouse_producer;
    grant execute on function rouse.enqueue(text, text, text, interval, timestamptz, text, json, text) to rouse_producer;
    grant execute on function rouse.enqueue(text, json, text, interval, timestamptz, text, json, text) to rouse_producer;
    grant execute on function rouse.enqueue(text, jsonb, text, interval, timestamptz, text, jsonb, text) to rouse_producer;
    grant execute on function rouse.enqueue_many(jsonb) to rouse_producer;
    grant execute on function rouse.ack_in(uuid, bigint, bigint) to rouse_producer;
    grant execute on function rouse.ack_in(text) to rouse_producer;
  end if;
  for v_role in
    select a.grantee::regrole from pg_proc p, aclexplode(p.proacl) a
    where p.oid = 'rouse.enqueue(text, json, text, interval, timestamptz, text, json, text)'::regprocedure
      and a.grantee not in (0, p.proowner)
  loop
    execute format('grant execute on function rouse.enqueue(text, text, text, interval, timestamptz, text, json, text) to %s', v_role);
    execute format('grant execute on function rouse.enqueue(text, jsonb, text, interval, timestamptz, text, jsonb, text) to %s', v_role);
    execute format('grant execute on function rouse.enqueue_many(jsonb) to %s', v_role);
  end loop;
end $$;
