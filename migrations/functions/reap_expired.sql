-- Takes back leases that ran out. Their messages come back one per lease, in seq order, so that one that kills its
-- consumer charges only itself.
-- Parameters: the most leases to take.
-- Result: the `woken` lanes.
-- Locks: lanes by (partition, group), then leases by id, all with SKIP LOCKED: what is held now is left for later.
create or replace function rouse.reap_expired(p_limit integer default 1000)
returns table (queue text, partition text, consumer_group text, namespace text, task text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now timestamptz := rouse.now();
  v_due record;
  v_lanes record;
  v rouse.leases;
begin
  perform rouse.raise_durability();
  select array_agg(s.id) as ids, array_agg(s.partition_id) as partitions, array_agg(s.group_id) as groups into v_due
  from (select * from rouse.leases where expires_at <= v_now order by expires_at limit p_limit) s;
  if v_due.ids is null then
    return;
  end if;
  select array_agg(l.partition_id) as partitions, array_agg(l.group_id) as groups into v_lanes
  from (
    select l.partition_id, l.group_id from rouse.lanes l
    where l.partition_id = any (v_due.partitions) and l.group_id = any (v_due.groups)
    order by l.partition_id, l.group_id
    for no key update skip locked
  ) l;
  -- barrier: reap-locked
  for v in
    select s.* from rouse.leases s
    where s.id = any (v_due.ids)
      and exists (select from unnest(v_lanes.partitions, v_lanes.groups) t(p, g) where t.p = s.partition_id and t.g = s.group_id)
      and s.expires_at <= v_now  -- re-read: it may have been extended
    order by s.id, s.partition_id
    for update skip locked
  loop
    perform rouse.end_attempts(v, rouse.held_seqs(v.from_seq, v.unacked), 'expired', 'lease_expired',
      'the lease ran out before the message was acknowledged', null, v_now);
    delete from rouse.leases s where s.id = v.id and s.partition_id = v.partition_id;
    -- barrier: reap-written
    select w.* into queue, partition, consumer_group, namespace, task, count from rouse.free_lane(v, true, true) w;
    return next;
  end loop;
end $$;
