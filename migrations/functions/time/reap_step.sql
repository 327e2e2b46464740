-- Ends expired leases. Their messages are redelivered in seq order, each under its own lease, so that a
-- message that kills its consumer costs no other message an attempt. A lease that a user's transaction has
-- locked (ack_in) is skipped, and does not keep others from being reaped.
-- Parameters: the limit, which applies both to the number of leases and to the number of messages in them.
--   The step ends after v_ms_max in any case.
-- Result: wake hints; and a row with is_more and without a hint if the limit or the time ended the step. A
--   notice reports each lease whose messages became dead letters, for the log of the node.
-- Locks: leases by expiry, then their lanes by (partition, group), all with SKIP LOCKED: locked rows are left
--   for a later step. Locking leases before lanes violates the lock order, but does no harm: acks do not wait
--   for a locked lease, and reject an expired one anyway.
create or replace function rouse.reap_step(p_limit integer)
returns table (hint rouse.wake_hint, is_more boolean)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set lock_timeout = '250ms'  -- SKIP LOCKED can wait in one race: see pop_general
as $$
declare
  v_begun constant timestamptz := clock_timestamp();
  v_ms_max constant integer := 50;
  v_now timestamptz := rouse.now();
  v_left bigint := p_limit;
  v_is_over boolean := false;
  v_due record;
  v_lanes record;
  v_groups integer[] := '{}';
  v_given_up integer;
  v rouse.leases;
begin
  perform rouse.raise_durability();
  is_more := false;
  select array_agg(s.id) as ids, array_agg(s.partition_id) as partitions, array_agg(s.group_id) as groups into v_due
  from (select * from rouse.leases where expires_at <= v_now order by expires_at limit p_limit for update skip locked) s;
  if v_due.ids is null then
    return;
  end if;
  -- barrier: reap-leases-locked
  select array_agg(l.partition_id) as partitions, array_agg(l.group_id) as groups into v_lanes
  from (
    select l.partition_id, l.group_id from rouse.lanes l
    where l.partition_id = any (v_due.partitions) and l.group_id = any (v_due.groups)
    order by l.partition_id, l.group_id
    for no key update skip locked
  ) l;
  -- barrier: reap-locked
  for v in
    select s.* from unnest(v_due.ids, v_due.partitions) with ordinality d(id, partition_id, n)
    join rouse.leases s on s.id = d.id and s.partition_id = d.partition_id
    where exists (select from unnest(v_lanes.partitions, v_lanes.groups) t(p, g) where t.p = s.partition_id and t.g = s.group_id)
    order by d.n
  loop
    v_given_up := rouse.end_attempts(v, rouse.held_seqs(v.from_seq, v.unacked), 'expired', 'lease_expired',
      'the lease expired before the message was acknowledged', null, v_now);
    delete from rouse.leases s where s.id = v.id and s.partition_id = v.partition_id;
    -- barrier: reap-written
    hint := rouse.free_lane(v, true, true);
    if v_given_up > 0 then
      raise notice 'rouse: %', jsonb_build_object('event', 'dead_letter', 'queue', hint.queue, 'consumerGroup', hint.consumer_group,
        'partition', rouse.shown_partition(hint.partition), 'partitionId', v.partition_id::text, 'seq', v.from_seq, 'messages', v_given_up,
        'attempt', v.attempt, 'holder', v.holder, 'leaseId', v.id);
    end if;
    v_groups := v_groups || v.group_id;
    v_left := v_left - bit_count(v.unacked);
    if hint.queue is not null then  -- its group may have been deleted
      return next;
    end if;
    v_is_over := v_left <= 0 or clock_timestamp() > v_begun + v_ms_max * interval '1 millisecond';
    exit when v_is_over;
  end loop;
  -- It may have been the last attempt, and someone may wait for the end of the message.
  for hint in select * from rouse.ended_hints(v_groups) loop
    return next;
  end loop;
  -- If no lane was free, an immediate retry would not help.
  if v_is_over or (v_left < p_limit and cardinality(v_due.ids) >= p_limit) then
    hint := null;
    is_more := true;
    return next;
  end if;
end $$;
