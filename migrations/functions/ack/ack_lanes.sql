-- Completes several messages, or everything that several leases or one lease over several lanes still hold, with a
-- fixed number of statements instead of some per lease.
-- Parameters: per item the lease id, the partition id and the seq; or all of the last two null: everything that
--   the lease still holds; a group to which all leases must belong, or null.
-- Result: as ack. No row: nothing was changed, because an item needs the general form: its lease has expired or
--   does not hold the message, it occurs twice, or options of the queue make its end known to others.
-- Locks: as ack.
create or replace function rouse.ack_lanes(p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_group text)
returns table (rejected integer[], dead integer[], hint rouse.wake_hint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_whole constant boolean := p_seqs[1] is null;
  v_done boolean;
  v_now timestamptz;
  v_held record;     -- of the leases, per lane: lease ids, partition ids, what they hold after this ack
  v_setting text;
begin
  v_done := rouse.lock_leases(array(select distinct i from unnest(p_lease_ids) i order by i), false);
  -- barrier: ack-lanes-locked
  v_now := rouse.now();
  select array_agg(s.id) as ids, array_agg(s.partition_id) as partition_ids, array_agg(s.unacked & ~s.acked) as rests,
    case when v_whole then count(distinct s.id) else sum(s.items) end as items, bool_and(s.is_plain and bit_count(s.acked) > 0
      and (v_whole or (bit_count(s.acked) = s.items and s.acked & s.unacked = s.acked))) as is_plain,
    bool_or(s.acked = s.unacked) as has_ended, bool_or(s.acked <> s.unacked) as has_rests
  into v_held
  from (
    select s.id, s.partition_id, s.unacked, s.items, s.is_plain, case when v_whole then s.unacked else (
      select bit_or(case when q.seq >= s.from_seq and q.seq < s.from_seq + length(s.unacked)
        then set_bit(s.unacked & ~s.unacked, (q.seq - s.from_seq)::integer, 1) end)
      from unnest(s.seqs) q(seq)) end as acked
    from (
      select s.id, s.partition_id, s.group_id, s.from_seq, s.unacked, i.seqs, i.items,
        s.expires_at > v_now and not s.limited and not s.lane_limited and not s.recorded as is_plain
      from (
        select i.lease_id, i.partition_id, array_agg(i.seq) as seqs, count(*) as items
        from unnest(p_lease_ids, p_partition_ids, p_seqs) i(lease_id, partition_id, seq)
        group by i.lease_id, i.partition_id
      ) i, rouse.leases s
      where s.id = i.lease_id
        and s.partition_id >= coalesce(i.partition_id, 0) and s.partition_id <= coalesce(i.partition_id, 9223372036854775807)
      order by s.id, s.partition_id
      for update of s skip locked
    ) s
    where p_group is null or exists (select from rouse.groups g where g.id = s.group_id and g.name = p_group)
    offset 0
  ) s;
  if v_held.is_plain is not true or v_held.items < cardinality(p_lease_ids) then
    return;
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    v_setting := set_config('synchronous_commit', 'on', true);
  end if;
  -- barrier: ack-lanes-held
  if v_held.has_rests then
    update rouse.leases s set unacked = t.rest
    from unnest(v_held.ids, v_held.partition_ids, v_held.rests) t(id, partition_id, rest)
    where s.id = t.id and s.partition_id = t.partition_id and bit_count(t.rest) > 0;
  end if;
  if v_held.has_ended then
    return query
    with gone as (
      delete from rouse.leases s using unnest(v_held.ids, v_held.partition_ids, v_held.rests) t(id, partition_id, rest)
      where s.id = t.id and s.partition_id = t.partition_id and bit_count(t.rest) = 0
      returning s.id, s.partition_id, s.group_id, s.ordered
    ), freed as (
      update rouse.lanes l set lease_id = null
      from gone s
      where s.ordered and l.partition_id = s.partition_id and l.group_id = s.group_id and l.lease_id = s.id
      returning l.partition_id, l.group_id, l.next, l.ready, l.blocked_until
    )
    select null::integer[], null::integer[],
      row(q.name, p.name, g.name, q.namespace, q.task, rouse.lane_count(f.ready, p.head - greatest(f.next, p.tail),
        f.blocked_until is null and q.plain
        and not exists (select from rouse.redeliveries r where r.partition_id = f.partition_id and r.group_id = f.group_id)))::rouse.wake_hint
    from freed f, rouse.partitions p, rouse.groups g, rouse.queues q
    where p.id = f.partition_id and g.id = f.group_id and q.id = g.queue_id;
  end if;
  -- barrier: ack-lanes-written
  rejected := '{}';
  dead := '{}';
  return next;
end $$;
