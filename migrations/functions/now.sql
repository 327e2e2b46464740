-- The only clock of the storage layer: the database's, in milliseconds. Tests replace this function to freeze
-- it.
-- Parameters: none. Result: the current time at each call, not the start of the transaction. Locks: none.
create or replace function rouse.now() returns timestamptz
language sql volatile parallel safe
as $$ select date_trunc('milliseconds', clock_timestamp()) $$;

-- A UUID of version 7 on every server; PostgreSQL has uuidv7() from 18 on. As there, the twelve bits after
-- the milliseconds are the fraction of the millisecond, so that the ids of one session ascend with its clock.
-- The rest is random. It reads the real clock, as uuidv7() does: tests that freeze time need different ids.
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
