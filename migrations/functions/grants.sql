-- Privileges: producers may call enqueue, enqueue_many, cancel and ack_in, nothing else; nodes may use rows, but not
-- change the schema (auth/roles.sql). This file is applied last. A role that was granted enqueue for payloads of type
-- json, which once was the only one, also gets enqueue for text and jsonb, enqueue_many and cancel. A call with a
-- literal payload now resolves to the one for text.
-- Parameters: none. Result: none. Locks: none.
revoke execute on all functions in schema rouse from public;
do $$
declare
  v_role regrole;
begin
  perform rouse.grant_roles();
  for v_role in
    select a.grantee::regrole from pg_proc p, aclexplode(p.proacl) a
    where p.oid = 'rouse.enqueue(text, json, text, interval, timestamptz, text, json, text, integer, integer, bigint[], bigint, jsonb, text)'::regprocedure
      and a.grantee not in (0, p.proowner)
  loop
    execute format('grant execute on function rouse.enqueue(text, text, text, interval, timestamptz, text, json, text, integer, integer, bigint[], bigint, jsonb, text) to %s', v_role);
    execute format('grant execute on function rouse.enqueue(text, jsonb, text, interval, timestamptz, text, jsonb, text, integer, integer, bigint[], bigint, jsonb, text) to %s', v_role);
    execute format('grant execute on function rouse.enqueue_many(jsonb) to %s', v_role);
    execute format('grant execute on function rouse.cancel(uuid) to %s', v_role);
  end loop;
end $$;

-- enqueue without options, until this release.
drop function if exists rouse.schedule_message(text, text, text, interval, timestamptz, text, text, text);
