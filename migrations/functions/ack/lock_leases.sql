-- Serialises calls on the same leases. It locks the lanes of ordered leases, and takes an advisory lock per
-- unordered lease, so that two acks of one lease wait for each other while pops of its lane continue. If the
-- queue limits messages in flight per partition, it locks the lane of an unordered lease, too: a pop that has
-- just counted what is held could otherwise close the lane after the ack has opened it.
-- Parameters: lease ids; whether to lock the lanes of unordered leases, too. A call that may redeliver their
--   messages needs this.
-- Result: true; the caller reads the leases in a new statement.
-- Locks: lanes by (partition, group), then advisory locks by key. Lease rows are read unlocked.
create or replace function rouse.lock_leases(p_lease_ids uuid[], p_lanes_too boolean) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v record;
begin
  select array_agg(s.partition_id) filter (where s.ordered or s.lane_limited or p_lanes_too) as partitions,
    array_agg(s.group_id) filter (where s.ordered or s.lane_limited or p_lanes_too) as groups,
    min(s.group_id) = max(s.group_id) as is_one_group,
    array_agg(distinct hashtextextended(s.id::text, 0)) filter (where not s.ordered) as keys
  into v
  from rouse.leases s where s.id = any (p_lease_ids);
  if v.partitions is not null then
    perform from rouse.lanes l
    where l.partition_id = any (v.partitions) and l.group_id = any (v.groups)
      and (v.is_one_group or exists (select from unnest(v.partitions, v.groups) t(p, g) where t.p = l.partition_id and t.g = l.group_id))
    order by l.partition_id, l.group_id
    for no key update;
  end if;
  if v.keys is not null then
    for i in 1..cardinality(v.keys) loop  -- array_agg(distinct) has sorted them
      perform pg_advisory_xact_lock(v.keys[i]);
    end loop;
  end if;
  return true;
end $$;
