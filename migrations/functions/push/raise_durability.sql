-- A push or an ack is answered only when it is on disk: raises synchronous_commit to `on` where the session has
-- less, never lowers it. Called in the body, because a function's SET clause is undone before COMMIT. Calls of nodes
-- that write begin with it, so it also refuses their wrong isolation levels; ack_in does the same without that.
-- Parameters: none. Result: the setting now. Locks: none.
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
