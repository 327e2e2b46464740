-- Changes the expiry of leases that are still held. Without `exact` it is never earlier than before, so that a
-- keep-alive that arrives late does no harm.
-- Parameters: lease ids; per lease, how many ms from now it lasts; per lease, whether this is exact (null: none
--   is). An exact time may be earlier than before. If a call names a lease twice, an exact time counts.
-- Result: one row per lease with its expiry in ms since 1970, or null if it is lost. A lease that an open
--   ack_in has locked is not extended, and cannot expire while it is locked. RS400 if an exact time is given for
--   a lease of several messages: others may rely on the expiry of theirs.
-- Locks: lanes by (partition, group), then leases by id with SKIP LOCKED.
create or replace function rouse.extend_v2(p_lease_ids uuid[], p_durations_ms bigint[], p_exact boolean[])
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
  if true = any (p_exact) and exists (
    select from rouse.leases s
    where s.id = any (array(select t.id from unnest(p_lease_ids, p_exact) t(id, exact) where t.exact))
    group by s.id having sum(bit_count(s.unacked)) > 1
  ) then
    perform rouse.raise('RS400', 'invalid_request',
      'exact needs a lease of one message: pop with leasePerMessage, or with batch 1', '{"field": "exact"}');
  end if;
  with held as (
    select s.id, s.partition_id from rouse.leases s
    where s.id = any (p_lease_ids) and s.expires_at > v_now
    order by s.id, s.partition_id
    for update skip locked
  )
  update rouse.leases s
  set expires_at = case when t.exact_ms is not null then v_now + t.exact_ms * interval '1 millisecond'
    else greatest(s.expires_at, v_now + t.duration_ms * interval '1 millisecond') end
  from held h, (
    select t.id, max(t.duration_ms) as duration_ms, max(t.duration_ms) filter (where t.exact) as exact_ms
    from unnest(p_lease_ids, p_durations_ms, p_exact) t(id, duration_ms, exact) group by t.id) t
  where s.id = h.id and s.partition_id = h.partition_id and t.id = h.id;
  -- barrier: extend-written
  return query
  select t.id, (select date_part('epoch', min(s.expires_at)) * 1000 from rouse.leases s where s.id = t.id and s.expires_at > v_now)
  from unnest(p_lease_ids) with ordinality t(id, n)
  order by t.n;
end $$;

-- The same without exact times.
-- Parameters and result: as extend_v2. Locks: as extend_v2.
create or replace function rouse.extend(p_lease_ids uuid[], p_durations_ms bigint[])
returns table (lease_id uuid, expires_ms double precision)
language sql
as $$
  select * from rouse.extend_v2(p_lease_ids, p_durations_ms, null)
$$;
