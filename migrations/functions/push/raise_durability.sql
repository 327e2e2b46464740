-- A push or an ack is answered only when it is on disk: raises synchronous_commit to `on` if the session has
-- less, and never lowers it. It runs in the body, because a function's SET clause ends before COMMIT. Writing
-- calls of nodes begin with it, so it also refuses wrong isolation levels; ack_in sets the same without that
-- check.
-- Parameters: none. Result: the setting in force. Locks: none.
create or replace function rouse.raise_durability() returns text
language plpgsql
as $$
begin
  perform rouse.require_read_committed();
  if current_setting('synchronous_commit') in ('off', 'local') then
    return set_config('synchronous_commit', 'on', true);
  end if;
  return current_setting('synchronous_commit');
end $$;
