-- The general form of ack: any number of items, every status.
-- Parameters and result: as ack; and a wake hint for requests that wait for a message to end, if an item
-- failed or its lease is recorded. Locks: as ack.
create or replace function rouse.ack_general(
  p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_statuses text[], p_error_codes text[], p_error_messages text[],
  p_delays_ms bigint[], p_group text
) returns table (rejected integer[], dead integer[], hint rouse.wake_hint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_ids uuid[] := p_lease_ids;
  v_done boolean;
  v_now timestamptz;
  v_held rouse.leases;
  v_bits varbit;
  v_again boolean;
  v_given_up integer;
  v_whole boolean;
  v_n integer;
  v_at bigint;
  v_status text;
  v_ended integer[] := '{}';  -- groups that get a hint, because messages may have ended in them
  v_accepted boolean[] := array_fill(false, array[coalesce(cardinality(p_lease_ids), 0)]);
begin
  if cardinality(p_lease_ids) is distinct from cardinality(p_seqs) or cardinality(p_seqs) is distinct from cardinality(p_partition_ids)
     or cardinality(p_statuses) <> cardinality(p_seqs) or cardinality(p_lease_ids) is null
     or exists (select from unnest(p_partition_ids, p_seqs) i(partition_id, seq) where (i.partition_id is null) <> (i.seq is null)) then
    perform rouse.raise('RS400', 'invalid_request',
      'ack needs a lease and a status for every item, and both a partition and a seq or neither');
  end if;
  if cardinality(v_ids) > 1 then
    v_ids := array(select distinct i from unnest(p_lease_ids) i order by i);
  end if;
  v_status := rouse.raise_durability();
  v_done := rouse.lock_leases(v_ids, p_statuses is not null);
  -- barrier: ack-locked
  v_now := rouse.now();
  dead := '{}';
  for v_held in
    select s.* from rouse.leases s where s.id = any (v_ids) order by s.id, s.partition_id for update skip locked
  loop
    -- barrier: ack-lease-locked
    continue when v_held.expires_at <= v_now
      or (p_group is not null and not exists (select from rouse.groups g where g.id = v_held.group_id and g.name = p_group));
    v_bits := v_held.unacked;
    v_again := false;
    foreach v_n in array array_positions(p_lease_ids, v_held.id) loop
      v_whole := p_seqs[v_n] is null;
      v_at := p_seqs[v_n] - v_held.from_seq;
      continue when case when v_whole then bit_count(v_bits) = 0
        else p_partition_ids[v_n] is distinct from v_held.partition_id or v_at < 0 or v_at >= length(v_bits)
          or get_bit(v_bits, v_at::integer) = 0 end;
      v_status := coalesce(p_statuses[v_n], 'completed');
      if v_status <> 'completed' then
        v_given_up := rouse.end_attempts(v_held, case when v_whole then rouse.held_seqs(v_held.from_seq, v_bits) else array[p_seqs[v_n]] end,
          v_status, p_error_codes[v_n], p_error_messages[v_n], p_delays_ms[v_n], v_now);
        if v_given_up > 0 then
          dead := dead || v_n;
        end if;
        v_again := v_again or v_given_up < case when v_whole then bit_count(v_bits) else 1 end;
        v_ended := v_ended || v_held.group_id;
      elsif v_held.recorded then
        perform rouse.record_completed(v_held.partition_id, v_held.group_id, v_held.attempt, v_held.holder, v_held.delivered_at,
          case when v_whole then rouse.held_seqs(v_held.from_seq, v_bits) else array[p_seqs[v_n]] end, v_now);
        v_ended := v_ended || v_held.group_id;
      end if;
      v_bits := case when v_whole then v_bits & ~v_bits else set_bit(v_bits, v_at::integer, 0) end;
      v_accepted[v_n] := true;
    end loop;
    if v_bits <> v_held.unacked then
      if bit_count(v_bits) = 0 then
        delete from rouse.leases s where s.id = v_held.id and s.partition_id = v_held.partition_id;
      else
        update rouse.leases s set unacked = v_bits where s.id = v_held.id and s.partition_id = v_held.partition_id;
      end if;
      -- barrier: ack-lease-written
      hint := rouse.free_lane(v_held, bit_count(v_bits) = 0, v_again);
      if hint.queue is not null then
        return next;
      end if;
    end if;
  end loop;
  -- barrier: ack-written
  if cardinality(v_ended) > 0 then
    for hint in select * from rouse.ended_hints(v_ended) loop
      return next;
    end loop;
  end if;
  rejected := '{}';
  if false = any (v_accepted) then
    rejected := array(select n::integer from unnest(v_accepted) with ordinality a(accepted, n) where not accepted order by n);
  end if;
  hint := null;
  return next;
end $$;

-- Updates a lane after a lease on it ended or a message returned to it.
-- Parameters: the lease, whether it ended, whether a message is redelivered. Result: a wake hint, or null.
-- Locks: none beyond the lane, which the caller holds if it changes.
create or replace function rouse.free_lane(p_lease rouse.leases, p_ended boolean, p_again boolean) returns rouse.wake_hint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_hint rouse.wake_hint;
begin
  if (p_ended and p_lease.ordered) or p_again then
    update rouse.lanes l
    set lease_id = case when p_ended and l.lease_id = p_lease.id then null else l.lease_id end, ready = l.ready or p_again,
      blocked_until = nullif(l.blocked_until, 'infinity')
    where l.partition_id = p_lease.partition_id and l.group_id = p_lease.group_id;
  elsif p_lease.lane_limited then
    -- The lane was full. If it is still full, the next pop closes it again.
    update rouse.lanes l set blocked_until = null
    where l.partition_id = p_lease.partition_id and l.group_id = p_lease.group_id and l.blocked_until = 'infinity';
    if not found and not p_lease.limited then
      return null;
    end if;
  elsif not p_lease.limited then
    return null;
  end if;
  -- With an in-flight limit the hint names no partition, because the group may now pop from any of its lanes.
  select q.name, case when not p_lease.limited then p.name end, g.name, q.namespace, q.task,
    case when not p_again and not p_lease.limited then
      rouse.lane_count(l.ready, p.head - greatest(l.next, p.tail),
        l.blocked_until is null and q.plain
        and not exists (select from rouse.redeliveries r where r.partition_id = p_lease.partition_id and r.group_id = p_lease.group_id)) end
  into v_hint
  from rouse.partitions p, rouse.lanes l, rouse.groups g, rouse.queues q
  where p.id = p_lease.partition_id and l.partition_id = p_lease.partition_id and l.group_id = p_lease.group_id
    and g.id = p_lease.group_id and q.id = p.queue_id;
  return v_hint;
end $$;

-- The seqs that a lease still holds.
-- Parameters: its first seq and its bits. Result: seqs in order. Locks: none.
create or replace function rouse.held_seqs(p_from bigint, p_bits varbit) returns bigint[]
language sql immutable
as $$
  select array_agg(p_from + i order by i) from generate_series(0, length(p_bits) - 1) i where get_bit(p_bits, i) = 1
$$;
