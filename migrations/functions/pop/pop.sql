-- Leases messages to the waiters of one consumer group, oldest waiter first.
-- Parameters: either a queue and one of its partitions (null: any), or a null queue and a namespace and / or
--   task (queues of the highest priority first); the group; per waiter the maximum number of messages and of
--   partitions, the lease time in ms (null: the queue's), whether delivery also acknowledges the messages,
--   and the holder's name; where a new group begins ('all', 'new', or 'from' a time); the partition id after
--   which the search starts (callers rotate it); whether the lease must survive a crash of the database; the
--   maximum bytes of payload and headers per waiter. The first message of a waiter is always included,
--   whatever its size.
-- Result: one row per message, ordered by lease and seq, with its waiter, lease and partition id. Queue,
--   partition (null: the messages are independent), attempt and expiry are set on the first row of each lease,
--   and may be null on the others. Only returned rows are leased. The last row has only the database's time and
--   the status: messages, empty (no lane has messages, or limits withhold them), contended (a lane with
--   messages was locked: retry within 5 ms) or paused; and in expires_ms, if a rate withholds messages, the
--   time at which the next are deliverable: the caller then runs promote_ready.
-- Locks: the group if it has an in-flight limit or a rate; lanes and then partitions with SKIP LOCKED, so that a pop
--   does not wait for other calls. In one race SKIP LOCKED waits after all (see pop_general), and the pop may
--   deadlock because it holds lanes. Its lock_timeout is therefore shorter than deadlock_timeout: the pop
--   fails with 55P03 and is repeated, before PostgreSQL checks for a deadlock and ends another call that has
--   done more work.
create or replace function rouse.pop(
  p_queue text, p_partition text, p_namespace text, p_task text, p_group text,
  p_batches integer[], p_lane_limits integer[], p_leases_ms bigint[], p_auto_acks boolean[], p_holders text[],
  p_subscription text default 'all', p_from timestamptz default null, p_after bigint default 0, p_durable boolean default false,
  p_bytes_max bigint default 16777216
) returns table (
  status text, waiter integer, lease_id uuid, queue text, partition_id bigint, partition text, attempt integer,
  expires_ms double precision, seq bigint, message_id uuid, created_ms double precision, transaction_id text,
  trace_id text, payload text, headers text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set lock_timeout = '250ms'
as $$
#variable_conflict use_column
declare
  v_waiters constant integer := cardinality(p_batches);
  v_queue_id integer;
  v_version bigint;
  v_queue text;
  v_ordering text;
  v_ordered boolean;          -- of the lane
  v_lease_ms bigint;
  v_group_id integer;
  v_waiter integer := 1;      -- the waiter whose turn it is
  v_after bigint := p_after;
  v_to bigint := 9223372036854775807;
  v_lane_id bigint;
  v_partition text;
  v_first bigint;             -- the first seq that the lane offers
  v_from bigint;              -- the first seq for this waiter
  v_next bigint;              -- the seq after the last one for this waiter
  v_head bigint;
  v_lease_id uuid;
  v_now timestamptz;
  v_returned integer;
  v_bits varbit;
  v_settles boolean;
  v_settled_to bigint := 0;   -- the highest partition that this call has locked to settle its lane
  v_plain boolean := false;   -- everything so far was plain
  v_setting text;
begin
  -- The short path: fresh messages of a queue without limits, one lane per waiter, or several lanes for a
  -- single one. plpgsql prepares every
  -- expression again in each transaction, so the cost of a call with one message depends mainly on the number
  -- of expressions that it evaluates. Several waiters must want so little that the limit of pop_general for
  -- the bytes of a call does not matter.
  if p_partition is null and p_auto_acks is null and current_setting('transaction_isolation') = 'read committed'
     and cardinality(p_lane_limits) = v_waiters and cardinality(p_holders) = v_waiters and (1 = all (p_lane_limits) or (v_waiters = 1 and p_lane_limits[1] > 1))
     and array_position(p_holders, null) is null
     and (v_waiters = 1 or (p_batches[1] = all (p_batches) and p_batches[1] * v_waiters <= 30 and p_bytes_max <= 16777216)) then
    select q.id, q.version, q.name, q.ordering, q.lease_ms, g.id
    into v_queue_id, v_version, v_queue, v_ordering, v_lease_ms, v_group_id
    from rouse.queues q, rouse.groups g
    where q.name = p_queue and g.queue_id = q.id and g.name = p_group and q.plain
      and g.last_seen_at > rouse.now() - interval '1 minute';
    v_plain := found;
  end if;
  -- barrier: pop-begun
  if v_plain and p_lane_limits[1] > 1 then
    return query select * from rouse.pop_lanes(v_queue_id, v_version, v_queue, v_ordering, v_group_id, p_batches[1],
      least(p_lane_limits[1], 1000), coalesce(p_leases_ms[1], v_lease_ms), p_holders[1], p_after, p_bytes_max);
    if found then
      v_now := rouse.now();
      v_waiter := 2;
    else
      v_plain := false;
    end if;
  end if;
  while v_plain and v_waiter <= v_waiters loop
    -- This statement locks a lane. The next statement reads it, and sees everything that was committed before
    -- the lock.
    select l.partition_id into v_lane_id from rouse.lanes l
    where l.group_id = v_group_id and l.ready and l.lease_id is null and l.blocked_until is null
      and l.partition_id > v_after and l.partition_id <= v_to
    order by l.group_id, l.partition_id limit 1
    for no key update skip locked;
    if v_lane_id is null then
      exit when v_to = p_after or p_after = 0;
      v_after := 0;  -- continue with the lanes before the start
      v_to := p_after;
      continue;
    end if;
    -- barrier: pop-lane-locked
    select rouse.shown_partition(p.name), rouse.is_ordered(q.ordering, p.name), greatest(l.next, p.tail), greatest(l.next, p.tail),
      least(greatest(l.next, p.tail) + p_batches[v_waiter], p.head), p.head, gen_random_uuid(), rouse.now()
    into v_partition, v_ordered, v_first, v_from, v_next, v_head, v_lease_id, v_now
    from rouse.lanes l, rouse.partitions p, rouse.queues q
    where l.partition_id = v_lane_id and l.group_id = v_group_id and p.id = v_lane_id and p.head > greatest(l.next, p.tail)
      and p.options_until <= greatest(l.next, p.tail)  -- the general form reads the options of messages
      and q.id = v_queue_id and q.version = v_version  -- configure locks the lanes before it changes the ordering
      and not exists (select from rouse.redeliveries r where r.partition_id = v_lane_id and r.group_id = v_group_id);
    if not found then
      -- On an unordered lane a message that waits for its retry delays no other.
      select rouse.shown_partition(p.name), false, greatest(l.next, p.tail), greatest(l.next, p.tail),
        least(greatest(l.next, p.tail) + p_batches[v_waiter], p.head), p.head, gen_random_uuid(), rouse.now()
      into v_partition, v_ordered, v_first, v_from, v_next, v_head, v_lease_id, v_now
      from rouse.lanes l, rouse.partitions p, rouse.queues q
      where l.partition_id = v_lane_id and l.group_id = v_group_id and p.id = v_lane_id and p.head > greatest(l.next, p.tail)
        and p.options_until <= greatest(l.next, p.tail)
        and q.id = v_queue_id and q.version = v_version and not rouse.is_ordered(q.ordering, p.name)
        and not exists (
          select from rouse.redeliveries r where r.partition_id = v_lane_id and r.group_id = v_group_id and r.announced);
    end if;
    v_plain := found;
    exit when not v_plain;
    -- barrier: pop-lane-offered
    -- Rows are returned before they are leased, and only returned rows are leased. The lane is locked, so no
    -- other call delivers them meanwhile.
    loop
      if v_next = v_from + 1 then
        return query
        select null::text, v_waiter, v_lease_id, v_queue, v_lane_id, v_partition, 1,
          date_part('epoch', v_now) * 1000 + coalesce(p_leases_ms[v_waiter], v_lease_ms),
          m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
        from rouse.messages m
        where m.partition_id = v_lane_id and m.seq = v_from;
      else
        return query
        select null::text, v_waiter, v_lease_id, case when m.n = 1 then v_queue end, v_lane_id,
          case when m.n = 1 then v_partition end, case when m.n = 1 then 1 end,
          case when m.n = 1 then date_part('epoch', v_now) * 1000 + coalesce(p_leases_ms[v_waiter], v_lease_ms) end,
          m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
        from (
          select m.*, row_number() over w as n, sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) over w as bytes
          from rouse.messages m
          where m.partition_id = v_lane_id and m.seq >= v_from and m.seq < v_next
          window w as (order by m.seq rows unbounded preceding)
        ) m
        where m.n = 1 or m.bytes <= p_bytes_max
        order by m.seq;
      end if;
      get diagnostics v_returned = row_count;
      if v_returned = 0 then
        -- Missing rows in the log must not block the lane: the general form moves the cursor past them.
        v_plain := false;
        v_next := v_from;
        exit;
      elsif v_returned < v_next - v_from then
        select t.to_seq + 1, t.members into v_next, v_bits
        from rouse.part_taken(v_lane_id, v_from, v_next - 1, p_bytes_max, true, v_now) t;
      end if;
      exit when v_ordered;
      insert into rouse.leases
      values (v_lease_id, v_lane_id, v_group_id, v_from, v_next - 1,
        coalesce(v_bits, rpad('1', v_returned, '1')::varbit), 1, false, false, p_holders[v_waiter], v_now,
        v_now + coalesce(p_leases_ms[v_waiter], v_lease_ms) * interval '1 millisecond');
      -- The waiters share the messages of an unordered lane.
      v_waiter := v_waiter + 1;
      exit when v_waiter > v_waiters or v_next >= v_head;
      v_bits := null;
      v_from := v_next;
      v_next := least(v_from + p_batches[v_waiter], v_head);
      v_lease_id := gen_random_uuid();
    end loop;
    exit when v_next = v_first;
    -- Settle: clears `ready` of a drained lane, unless its partition is locked, because then a push may be in
    -- progress. Partitions are locked in ascending order only (see pop_general).
    v_settles := false;
    if v_next = v_head and v_lane_id > v_settled_to then
      perform from rouse.partitions p where p.id = v_lane_id for no key update skip locked;
      v_settles := found;
      v_settled_to := v_lane_id;
    end if;
    -- barrier: pop-lane-settling
    -- This must be a new statement: it then sees the new head of every push that had locked the partition
    -- before.
    if v_ordered then
      with leased as (
        insert into rouse.leases
        values (v_lease_id, v_lane_id, v_group_id, v_from, v_next - 1,
          coalesce(v_bits, rpad('1', v_returned, '1')::varbit), 1, true, false, p_holders[v_waiter], v_now,
          v_now + coalesce(p_leases_ms[v_waiter], v_lease_ms) * interval '1 millisecond')
      )
      update rouse.lanes l
      set next = v_next, lease_id = v_lease_id,
        ready = not (v_settles and v_next = (select p.head from rouse.partitions p where p.id = v_lane_id))
      where l.partition_id = v_lane_id and l.group_id = v_group_id;
      v_waiter := v_waiter + 1;
    else
      update rouse.lanes l
      set next = v_next,
        ready = not (v_settles and v_next = (select p.head from rouse.partitions p where p.id = v_lane_id))
      where l.partition_id = v_lane_id and l.group_id = v_group_id;
    end if;
    -- barrier: pop-lane-leased
    v_bits := null;
    v_after := v_lane_id;
  end loop;

  if v_plain and v_waiter > 1 then
    if not p_durable then
      v_setting := set_config('synchronous_commit', 'off', true);
    end if;
    created_ms := date_part('epoch', v_now) * 1000;
    status := 'messages';
    return next;
  elsif v_plain and not exists (
    select from rouse.lanes l where l.group_id = v_group_id and l.ready and l.lease_id is null and l.blocked_until is null
  ) then
    created_ms := date_part('epoch', rouse.now()) * 1000;
    status := 'empty';
    return next;
  elsif v_waiter = 1 then
    return query select * from rouse.pop_general(p_queue, p_partition, p_namespace, p_task, p_group, p_batches, p_lane_limits,
      p_leases_ms, p_auto_acks, p_holders, p_subscription, p_from, p_after, p_durable, p_bytes_max, null);
  else
    -- The general form goes on for the waiters that have no messages yet.
    return query
    select case when r.status is not null then 'messages' end, r.waiter + v_waiter - 1, r.lease_id, r.queue, r.partition_id,
      r.partition, r.attempt, r.expires_ms, r.seq, r.message_id, r.created_ms, r.transaction_id, r.trace_id, r.payload, r.headers
    from rouse.pop_general(p_queue, p_partition, p_namespace, p_task, p_group, p_batches[v_waiter:], p_lane_limits[v_waiter:],
      p_leases_ms[v_waiter:], p_auto_acks, p_holders[v_waiter:], p_subscription, p_from, v_after, p_durable, p_bytes_max, null) r;
  end if;
end $$;
