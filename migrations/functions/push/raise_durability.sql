-- Raises synchronous_commit to `on` if the session has a lower level, so that a push or an ack is answered
-- only when it is on disk. Never lowers it. Functions call this in their body, because the effect of a SET
-- clause would end before COMMIT. Functions that nodes call to write begin with this call, so it also refuses
-- wrong isolation levels. ack_in sets synchronous_commit itself, because it must work at every isolation
-- level.
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
