-- Leases messages to the waiters of one consumer group, oldest waiter first.
-- Parameters: either a queue and one of its partitions (null: any), or a null queue and a namespace and / or
--   task (queues of the highest priority first); the group; per waiter the maximum number of messages and of
--   partitions, the lease time in ms (null: the queue's), whether delivery also acknowledges the messages,
--   and the holder's name; where a new group begins ('all', 'new', or 'from' a time); the partition id after
--   which the search starts (callers rotate it); whether the lease must survive a crash of the database; the
--   maximum bytes of payload and headers per waiter. The first message of a waiter is always included,
--   whatever its size.
-- Result: one row per message, ordered by lease and seq, with its waiter, lease and partition id. Queue,
--   partition, attempt and expiry are set on the first row of each lease, and may be null on the others. Only
--   returned rows are leased. The last row has only the database's time and the status: messages, empty (no
--   lane has messages), contended (a lane with messages was locked: retry within 5 ms) or paused.
-- Locks: the group if it has an in-flight limit; lanes and then partitions with SKIP LOCKED, so that a pop
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
  v record;           -- the queue and the group
  v_lane_id bigint;
  v_lane record;
  v_returned integer;
  v_bits varbit;
  v_settles boolean := false;
  v_setting text;
begin
  -- The short path: one waiter, fresh messages of one lane, an ordered queue without limits. plpgsql prepares
  -- every expression again in each transaction, so the cost of a call with one message depends mainly on the
  -- number of expressions that it evaluates.
  if p_partition is null and cardinality(p_batches) = 1 and p_lane_limits[1] = 1 and p_auto_acks is null and p_holders[1] is not null
     and current_setting('transaction_isolation') = 'read committed' then
    select q.id, q.version, q.name, g.id as group_id, coalesce(p_leases_ms[1], q.lease_ms) as lease_ms into v
    from rouse.queues q, rouse.groups g
    where q.name = p_queue and g.queue_id = q.id and g.name = p_group and not q.paused and q.ordering = 'partition'
      and q.in_flight_max = 0 and q.ttl_ms = 0 and q.wait_ms_max = 0 and q.window_ms = 0
      and g.last_seen_at > rouse.now() - interval '1 minute';
    if found then
      -- This statement locks a lane. The next statement reads it, and sees everything that was committed
      -- before the lock.
      select l.partition_id into v_lane_id from rouse.lanes l
      where l.group_id = v.group_id and l.ready and l.lease_id is null and l.blocked_until is null and l.partition_id > p_after
      order by l.group_id, l.partition_id limit 1
      for no key update skip locked;
    end if;
  end if;
  -- barrier: pop-lane-locked
  if v_lane_id is not null then
    select p.name, greatest(l.next, p.tail) as from_seq, least(greatest(l.next, p.tail) + p_batches[1], p.head) as next, p.head,
      gen_random_uuid() as lease_id, rouse.now() as now
    into v_lane
    from rouse.lanes l, rouse.partitions p, rouse.queues q
    where l.partition_id = v_lane_id and l.group_id = v.group_id and p.id = v_lane_id and p.head > greatest(l.next, p.tail)
      and q.id = v.id and q.version = v.version  -- configure locks the lanes before it changes the ordering
      and not exists (select from rouse.redeliveries r where r.partition_id = v_lane_id and r.group_id = v.group_id);
    if not found then
      v_lane_id := null;
    end if;
  end if;
  if v_lane_id is null then
    return query select * from rouse.pop_general(p_queue, p_partition, p_namespace, p_task, p_group, p_batches, p_lane_limits,
      p_leases_ms, p_auto_acks, p_holders, p_subscription, p_from, p_after, p_durable, p_bytes_max);
    return;
  end if;

  -- barrier: pop-lane-offered
  -- Rows are returned before they are leased, and only returned rows are leased. The lane is locked, so no
  -- other call delivers them meanwhile.
  if v_lane.next = v_lane.from_seq + 1 then
    return query
    select null::text, 1, v_lane.lease_id, v.name, v_lane_id, v_lane.name, 1, date_part('epoch', v_lane.now) * 1000 + v.lease_ms,
      m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
    from rouse.messages m
    where m.partition_id = v_lane_id and m.seq = v_lane.from_seq;
  else
    return query
    select null::text, 1, v_lane.lease_id, case when m.n = 1 then v.name end, v_lane_id,
      case when m.n = 1 then v_lane.name end, case when m.n = 1 then 1 end,
      case when m.n = 1 then date_part('epoch', v_lane.now) * 1000 + v.lease_ms end,
      m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
    from (
      select m.*, row_number() over w as n, sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) over w as bytes
      from rouse.messages m
      where m.partition_id = v_lane_id and m.seq >= v_lane.from_seq and m.seq < v_lane.next
      window w as (order by m.seq rows unbounded preceding)
    ) m
    where m.n = 1 or m.bytes <= p_bytes_max
    order by m.seq;
  end if;
  get diagnostics v_returned = row_count;
  if v_returned = 0 then
    -- Missing rows in the log must not block the lane: the general form moves the cursor past them.
    return query select * from rouse.pop_general(p_queue, p_partition, p_namespace, p_task, p_group, p_batches, p_lane_limits,
      p_leases_ms, p_auto_acks, p_holders, p_subscription, p_from, p_after, p_durable, p_bytes_max);
    return;
  elsif v_returned < v_lane.next - v_lane.from_seq then
    select t.to_seq + 1, t.members into v_lane.next, v_bits
    from rouse.part_taken(v_lane_id, v_lane.from_seq, v_lane.next - 1, p_bytes_max, true) t;
  end if;
  if not p_durable then
    v_setting := set_config('synchronous_commit', 'off', true);
  end if;
  -- Settle: clears `ready` of a drained lane, unless its partition is locked, because then a push may be in
  -- progress.
  if v_lane.next = v_lane.head then
    perform from rouse.partitions p where p.id = v_lane_id for no key update skip locked;
    v_settles := found;
  end if;
  -- barrier: pop-lane-settling
  -- This must be a new statement: it then sees the new head of every push that had locked the partition
  -- before.
  with leased as (
    insert into rouse.leases
    values (v_lane.lease_id, v_lane_id, v.group_id, v_lane.from_seq, v_lane.next - 1,
      coalesce(v_bits, rpad('1', v_returned, '1')::varbit), 1, true, false, p_holders[1], v_lane.now,
      v_lane.now + v.lease_ms * interval '1 millisecond')
  )
  update rouse.lanes l
  set next = v_lane.next, lease_id = v_lane.lease_id,
    ready = not (v_settles and v_lane.next = (select p.head from rouse.partitions p where p.id = v_lane_id))
  where l.partition_id = v_lane_id and l.group_id = v.group_id;
  -- barrier: pop-lane-leased
  created_ms := date_part('epoch', v_lane.now) * 1000;
  status := 'messages';
  return next;
end $$;
