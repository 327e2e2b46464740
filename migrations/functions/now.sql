-- The only clock of the storage layer: the database's time, truncated to milliseconds. Tests replace this
-- function to freeze the time.
-- Parameters: none. Result: the time of the call, not of the start of the transaction. Locks: none.
create or replace function rouse.now() returns timestamptz
language sql volatile parallel safe
as $$ select date_trunc('milliseconds', clock_timestamp()) $$;

-- Generates a UUID of version 7 on every supported server; PostgreSQL itself has uuidv7() from 18 on. As in
-- uuidv7(), the twelve bits after the milliseconds hold the fraction of the millisecond, so that the ids of
-- one session ascend with the clock. The rest is random. The function reads the real clock, not rouse.now(),
-- which tests freeze.
-- Parameters: none. Result: the id. Locks: none.
create or replace function rouse.uuid_v7() returns uuid
language plpgsql volatile parallel safe
as $$
declare
  v_us constant bigint := extract(epoch from clock_timestamp()) * 1000000;
begin
  return lpad(to_hex(v_us / 1000), 12, '0') || '7' || lpad(to_hex(v_us % 1000 * 4096 / 1000), 3, '0')
    || right(gen_random_uuid()::text, 17);
end $$;
