-- Acknowledges messages as completed, failed (retried with the queue's delays, a dead letter after the last
-- attempt), retry (redelivered without charging the attempt) or dlq (a dead letter at once). If the lease of
-- an item has expired or does not hold the message, the item is rejected and changes nothing.
-- Parameters: per item the lease id, the partition id and seq (both null: everything that the lease still
--   holds); status, error code, error text and delay in ms, each null if no item has one (without statuses,
--   all items are completed); a group to which all leases must belong, or null.
-- Result: a wake hint for each lane that was freed, whose count is what lane_count returns; then a last row
--   with the 1-based positions of the rejected items, and of the items that became dead letters.
-- Locks: lanes by (partition, group), then leases by id with SKIP LOCKED. If an open ack_in has locked the
--   lease of an item, the item is rejected.
create or replace function rouse.ack(
  p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[],
  p_statuses text[] default null, p_error_codes text[] default null, p_error_messages text[] default null,
  p_delays_ms bigint[] default null, p_group text default null
) returns table (rejected integer[], dead integer[], hint rouse.wake_hint)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_partition_id bigint;
  v_group_id integer;
  v_ordered boolean := true;
  v_expires_at timestamptz;
  v_rest varbit;     -- what the lease holds after this ack; null: the item is left to the general form
  v_setting text;
begin
  -- The short path: one message, or everything that one lease still holds, is completed.
  if cardinality(p_lease_ids) = 1 and cardinality(p_seqs) = 1 and cardinality(p_partition_ids) = 1 and p_statuses is null
     and current_setting('transaction_isolation') = 'read committed' then
    v_partition_id := p_partition_ids[1];
    if v_partition_id is null and p_seqs[1] is null then
      -- A lease over several lanes is left to the general form.
      select s.partition_id into v_partition_id from rouse.leases s
      where s.id = p_lease_ids[1] and not exists (select from rouse.leases o where o.id = s.id and o.partition_id <> s.partition_id);
    elsif p_seqs[1] is null then
      v_partition_id := null;
    end if;
  end if;
  if v_partition_id is not null then
    -- Locks the lane, then the lease. PostgreSQL returns the versions of both rows that it has locked, and
    -- checks them again if it had to wait.
    select s.group_id, s.expires_at, rouse.bits_after(s.from_seq, s.unacked, p_seqs[1]) into v_group_id, v_expires_at, v_rest
    from (
      select s.group_id, s.from_seq, s.unacked, s.expires_at
      from rouse.leases s, rouse.lanes l
      where s.id = p_lease_ids[1] and s.partition_id = v_partition_id and s.ordered and not s.limited and not s.recorded
        and l.partition_id = v_partition_id and l.group_id = s.group_id
      for no key update of l for update of s skip locked
    ) s
    where p_group is null or exists (select from rouse.groups g where g.id = s.group_id and g.name = p_group);
    if v_group_id is null then
      -- Acks of an unordered lease wait for each other at an advisory lock, as in lock_leases: the lane stays
      -- free for pops.
      perform pg_advisory_xact_lock(hashtextextended(s.id::text, 0))
      from rouse.leases s where s.id = p_lease_ids[1] and s.partition_id = v_partition_id and not s.ordered and not s.limited
        and not s.lane_limited and not s.recorded;
      if found then
        v_ordered := false;
        select s.expires_at, rouse.bits_after(s.from_seq, s.unacked, p_seqs[1]) into v_expires_at, v_rest
        from (
          select s.group_id, s.from_seq, s.unacked, s.expires_at from rouse.leases s
          where s.id = p_lease_ids[1] and s.partition_id = v_partition_id
          for update skip locked
        ) s
        where p_group is null or exists (select from rouse.groups g where g.id = s.group_id and g.name = p_group);
      end if;
    end if;
  end if;
  if v_partition_id is null and p_statuses is null and cardinality(p_seqs) = cardinality(p_lease_ids)
     and cardinality(p_seqs) = cardinality(p_partition_ids) and current_setting('transaction_isolation') = 'read committed'
     and ((array_position(p_seqs, null) is null and array_position(p_partition_ids, null) is null)
       or cardinality(array_remove(p_seqs, null)) + cardinality(array_remove(p_partition_ids, null)) = 0) then
    return query select * from rouse.ack_lanes(p_lease_ids, p_partition_ids, p_seqs, p_group);
    if found then
      return;
    end if;
  end if;
  -- The clock is read after the locks.
  if v_rest is null or v_expires_at <= rouse.now() then
    return query select * from rouse.ack_general(p_lease_ids, p_partition_ids, p_seqs, p_statuses, p_error_codes, p_error_messages,
      p_delays_ms, p_group);
    return;
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    v_setting := set_config('synchronous_commit', 'on', true);
  end if;
  -- barrier: ack-lease-locked
  if bit_count(v_rest) > 0 then
    update rouse.leases s set unacked = v_rest where s.id = p_lease_ids[1] and s.partition_id = v_partition_id;
  elsif v_ordered then
    return query
    with gone as (
      delete from rouse.leases s where s.id = p_lease_ids[1] and s.partition_id = v_partition_id
    ), freed as (
      update rouse.lanes l set lease_id = null
      where l.partition_id = v_partition_id and l.group_id = v_group_id and l.lease_id = p_lease_ids[1]
      returning l.next, l.ready, l.blocked_until
    )
    select null::integer[], null::integer[],
      row(q.name, p.name, g.name, q.namespace, q.task, rouse.lane_count(f.ready, p.head - greatest(f.next, p.tail),
        f.blocked_until is null and q.plain
        and not exists (select from rouse.redeliveries r where r.partition_id = v_partition_id and r.group_id = v_group_id)))::rouse.wake_hint
    from freed f, rouse.partitions p, rouse.groups g, rouse.queues q
    where p.id = v_partition_id and g.id = v_group_id and q.id = g.queue_id;
  else
    delete from rouse.leases s where s.id = p_lease_ids[1] and s.partition_id = v_partition_id;
  end if;
  -- barrier: ack-lease-written
  -- barrier: ack-lane-freed
  rejected := '{}';
  dead := '{}';
  return next;
end $$;

-- The messages that a lease holds after an ack.
-- Parameters: the lease's first seq and bits; the seq of the message, null: all.
-- Result: the bits; null if the lease does not hold the message. Locks: none.
create or replace function rouse.bits_after(p_from bigint, p_bits varbit, p_seq bigint) returns varbit
language sql immutable
as $$
  select case
    when p_seq is null then p_bits & ~p_bits
    when p_seq < p_from or p_seq >= p_from + length(p_bits) then null
    when get_bit(p_bits, (p_seq - p_from)::integer) = 1 then set_bit(p_bits, (p_seq - p_from)::integer, 0) end
$$;

-- The count of a wake hint for a lane that was freed: how many messages its group can pop from it.
-- Parameters: whether the lane is ready; the number of messages between its cursor and the head of its
--   partition; whether these are what a pop would return: the lane is not blocked and has no redeliveries,
--   and no option of the queue withholds messages.
-- Result: the count, 0: none; null: not known. The count includes rows that are missing from the log. 0 is
--   certain until the caller commits: a lane that is not ready has no messages, and a push to it needs the
--   lane, which the caller has locked. A ready lane without messages is not certain: a push that does not
--   write the lane may commit before the caller does, and its own hint then comes too early.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.lane_count(p_ready boolean, p_left bigint, p_plain boolean) returns bigint
language sql immutable
as $$
  select case when not p_ready then 0 when p_left > 0 and p_plain then p_left end
$$;
