-- The time by which all decisions are made.
-- Locks: none.
create or replace function rouse.now() returns timestamptz language sql volatile as $$
  select clock_timestamp()
$$;
