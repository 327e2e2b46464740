-- Adds one to the counter, with a place to stop between reading and writing.
-- Locks: none until the update.
create or replace function rouse.bump() returns int language plpgsql as $$
declare
  seen int;
begin
  select value into seen from rouse.counter;
  -- barrier: between-read-and-write
  update rouse.counter set value = seen + 1;
  return seen + 1;
end
$$;
