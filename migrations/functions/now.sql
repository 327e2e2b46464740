-- The one clock of the storage layer: the database's, in milliseconds. Tests replace this function to freeze it.
-- Parameters: none.
-- Result: the time now, read anew at every call (never the transaction's start).
-- Locks: none.
create or replace function rouse.now() returns timestamptz
language sql volatile parallel safe
as $$ select date_trunc('milliseconds', clock_timestamp()) $$;
