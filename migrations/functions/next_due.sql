-- When the next thing falls due: what the reaper and the promoter would do, without doing it. A node asks this once a
-- second, so that an idle one costs one cheap query and not two that take locks and set durability.
-- Parameters: none.
-- Result: one row: milliseconds until the first lease runs out, and until the first scheduled message, blocked lane or
--   redelivery is due (0 where a lane was freed by ack_in); negative when overdue, null where there is nothing.
-- Locks: none.
create or replace function rouse.next_due() returns table (reap_in_ms double precision, promote_in_ms double precision)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now constant timestamptz := rouse.now();
begin
  return query
  select date_part('epoch', (select min(s.expires_at) from rouse.leases s) - v_now) * 1000,
    date_part('epoch', least(
      (select min(s.due_at) from rouse.scheduled s),
      (select min(l.blocked_until) from rouse.lanes l where l.blocked_until is not null),
      (select min(r.due_at) from rouse.redeliveries r where not r.announced),
      (select v_now from rouse.freed limit 1)) - v_now) * 1000;
end $$;
