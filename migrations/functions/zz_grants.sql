-- Who may call what: producers may enqueue and ack_in, nothing else.
-- Parameters: none. Result: none. Locks: none.
revoke execute on all functions in schema rouse from public;
do $$
begin
  if exists (select from pg_roles where rolname = 'rouse_producer') then
    grant usage on schema rouse to rouse_producer;
    grant execute on function rouse.enqueue(text, json, text, interval, timestamptz, text, json, text) to rouse_producer;
    grant execute on function rouse.ack_in(uuid, bigint, bigint) to rouse_producer;
    grant execute on function rouse.ack_in(text) to rouse_producer;
  end if;
end $$;
