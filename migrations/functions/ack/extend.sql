-- Extends leases that are still held; never shortens one.
-- Parameters: lease ids; per lease, how many ms from now it lasts.
-- Result: one row per lease with its expiry in ms since 1970, or null if it is lost. A lease that an open
--   ack_in has locked is not extended, and cannot expire while it is locked.
-- Locks: lanes by (partition, group), then leases by id with SKIP LOCKED.
create or replace function rouse.extend(p_lease_ids uuid[], p_durations_ms bigint[])
returns table (lease_id uuid, expires_ms double precision)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now timestamptz;
begin
  if cardinality(p_lease_ids) is distinct from cardinality(p_durations_ms) or 0 >= any (p_durations_ms) then
    perform rouse.raise('RS400', 'invalid_request', 'extend needs a positive duration for every lease');
  end if;
  perform rouse.raise_durability();
  perform rouse.lock_leases(p_lease_ids, false);
  -- barrier: extend-locked
  v_now := rouse.now();
  with held as (
    select s.id, s.partition_id from rouse.leases s
    where s.id = any (p_lease_ids) and s.expires_at > v_now
    order by s.id, s.partition_id
    for update skip locked
  )
  update rouse.leases s
  set expires_at = greatest(s.expires_at, v_now + t.duration_ms * interval '1 millisecond')
  from held h, (select id, max(duration_ms) as duration_ms from unnest(p_lease_ids, p_durations_ms) t(id, duration_ms) group by id) t
  where s.id = h.id and s.partition_id = h.partition_id and t.id = h.id;
  -- barrier: extend-written
  return query
  select t.id, (select date_part('epoch', min(s.expires_at)) * 1000 from rouse.leases s where s.id = t.id and s.expires_at > v_now)
  from unnest(p_lease_ids) with ordinality t(id, n)
  order by t.n;
end $$;
