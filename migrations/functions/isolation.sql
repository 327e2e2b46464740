-- Refuses every isolation level except read committed. The functions that nodes call lock a row, then read
-- what other transactions committed before the lock. With a snapshot older than the lock, a push would not
-- see that a pop has settled a lane: it would not set `ready` again, and its messages would not be delivered.
-- rouse.enqueue and rouse.ack_in work at every level.
-- Parameters: none.
-- Result: nothing, or RS400 (wrong_isolation); the node then repeats the call in a separate transaction.
-- Locks: none.
create or replace function rouse.require_read_committed() returns void
language plpgsql
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform rouse.raise('RS400', 'wrong_isolation',
      format('this call needs read committed, but the transaction is %s', current_setting('transaction_isolation')));
  end if;
end $$;
