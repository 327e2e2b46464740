-- The general form of pop: any number of waiters and partitions, redeliveries, limits, priorities, namespaces.
-- In a queue with priorities the first round takes the lanes of messages with a priority, the highest first. If
-- one of them is locked, or keeps messages that it could deliver, nothing lower is taken.
-- Parameters and result: as pop_v2. Locks: as pop.
create or replace function rouse.pop_general(
  p_queue text, p_partition text, p_namespace text, p_task text, p_group text,
  p_batches integer[], p_lane_limits integer[], p_leases_ms bigint[], p_auto_acks boolean[], p_holders text[],
  p_subscription text, p_from timestamptz, p_after bigint, p_durable boolean, p_bytes_max bigint, p_lease_each boolean[]
) returns table (
  status text, waiter integer, lease_id uuid, queue text, partition_id bigint, partition text, attempt integer,
  expires_ms double precision, seq bigint, message_id uuid, created_ms double precision, transaction_id text,
  trace_id text, payload text, headers text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_rounds_max constant integer := 20;
  v_end constant bigint := 9223372036854775807;
  v_waiters constant integer := cardinality(p_batches);
  v_now timestamptz := rouse.now();
  v_setting text;
  v_queue_ids integer[];                -- by priority; null if the call names a queue
  v_queue rouse.queues;
  v_group record;
  v_group_id integer;
  v_created boolean := false;           -- a group was created: that must survive a crash
  v_ordered boolean;                    -- of the lane
  v_partition text;
  v_partition_id bigint;
  v_low bigint;
  v_high bigint;
  v_allowed bigint;                     -- how many more messages in_flight_max and rate permit
  v_tokens bigint;                      -- how many messages the rate permitted at first
  v_before integer;                     -- the messages found in other queues
  v_is_named boolean;                   -- the limits of partitions apply: the partition is not a reserved one
  v_lane_allowed bigint;                -- how many more messages of the lane its partition's limits permit
  v_lane_taken bigint;
  v_lane_tokens bigint;                 -- how many messages its rate permitted at first
  v_lane_room bigint;                   -- how many messages partition_in_flight_max permitted at first
  v_full_at timestamptz;                -- when the bucket of the lane will be full
  v_opens_at timestamptz;               -- when a rate permits more messages
  v_call_bytes bigint := greatest(67108864, p_bytes_max);  -- the bytes that the call may still return
  v_bytes bigint[];                     -- per waiter, the bytes it may still get; only if it can get several leases
  v_budget bigint;                      -- the smaller of v_bytes and v_call_bytes
  v_must boolean;                       -- the waiter's first message is included, whatever its size
  v_used bigint;
  v_left integer[] := p_batches;        -- per waiter, the messages it still wants
  v_lanes_left integer[] := p_lane_limits;
  v_ids uuid[] := array_fill(null::uuid, array[coalesce(v_waiters, 0)]);
  v_turn integer := 1;                  -- the waiter whose turn it is
  v_tried integer;
  v_wanted integer;
  v_level_ids bigint[];                 -- the partitions of messages with a priority, the highest first
  v_in_levels boolean;                  -- this round takes their lanes
  v_had_level boolean[];                -- per waiter: it got messages with a priority
  v_level_end bigint;                   -- the level below which nothing is taken
  v_more integer;                       -- a round reads this many times the wanted number of lanes
  v_is_end boolean;                     -- all lanes with messages were seen
  v_lanes bigint[];
  v_seen bigint[];
  v_lane_id bigint;
  v_lane record;
  v_next bigint;
  v_from bigint;
  v_to bigint;
  v_bits varbit;
  v_take integer;
  v_returned integer;
  v_lease_id uuid;
  v_expires_at timestamptz;
  v_each uuid[];                        -- a lease id per message, if the waiter wants that
  v_settled boolean;
  v_settled_to bigint := 0;             -- the highest partition that this call has locked to settle its lane
  v_found integer := 0;
  v_contended boolean := false;
  v_paused boolean := false;
begin
  if v_waiters is null or p_group is null or v_waiters is distinct from cardinality(p_lane_limits) or v_waiters is distinct from cardinality(p_holders)
     or current_setting('transaction_isolation') <> 'read committed' then
    perform rouse.require_read_committed();
    perform rouse.raise('RS400', 'invalid_request', 'pop needs a group; every waiter needs a batch, a partition limit and a holder');
  end if;
  if v_waiters > 1 or p_lane_limits[1] > 1 then
    v_bytes := array_fill(p_bytes_max, array[v_waiters]);
  end if;
  if p_queue is null then
    v_queue_ids := rouse.queues_to_pop(p_namespace, p_task, p_group, v_now);
    -- Queues and groups are locked before any lane. Otherwise this pop could wait for a queue while it holds
    -- partitions, and a call that holds the queue to create a partition could wait for one of these
    -- partitions.
    for v_queue in select * from rouse.queues q where q.id = any (v_queue_ids) and not q.paused order by q.id loop
      v_group := rouse.group_to_pop(v_queue.id, p_group, p_subscription, p_from, v_now);
      v_created := v_created or v_group.created;
    end loop;
    perform rouse.lock_limited_groups(v_queue_ids, p_group);
  end if;

  for v_turn_of_queue in 1..coalesce(cardinality(v_queue_ids), 1) loop
    if p_queue is null then
      select * into v_queue from rouse.queues q where q.id = v_queue_ids[v_turn_of_queue];
    else
      select * into v_queue from rouse.queues q where q.name = p_queue;
    end if;
    continue when not found;
    if v_queue.paused then
      v_paused := true;
      continue;
    end if;
    v_partition_id := null;
    if p_partition is not null then
      select p.id into v_partition_id from rouse.partitions p where p.queue_id = v_queue.id and p.name = p_partition;
    end if;
    v_group := rouse.group_to_pop(v_queue.id, p_group, p_subscription, p_from, v_now);
    v_group_id := v_group.id;
    v_created := v_created or v_group.created;
    continue when p_partition is not null and v_partition_id is null;
    v_allowed := v_end;
    v_before := v_found;
    if v_queue.in_flight_max > 0 or v_queue.rate_limit > 0 then
      perform rouse.lock_limited_groups(array[v_queue.id], p_group);
      perform rouse.check_version(v_queue);
      v_now := rouse.now();  -- after the lock, so that a bucket never sees an earlier time than before
      if v_queue.in_flight_max > 0 then
        v_allowed := v_queue.in_flight_max
          - (select coalesce(sum(bit_count(s.unacked)), 0) from rouse.leases s where s.group_id = v_group_id and s.limited);
      end if;
      if v_queue.rate_limit > 0 then
        v_tokens := (select rouse.rate_tokens(v_queue.rate_limit, v_queue.rate_per_ms, g.rate_tat, v_now) from rouse.groups g where g.id = v_group_id);
        v_allowed := least(v_allowed, v_tokens);
      end if;
    end if;
    v_low := coalesce(v_partition_id, p_after + 1);
    v_high := coalesce(v_partition_id, v_end);
    v_seen := '{}';
    v_more := 1;
    v_is_end := false;
    v_in_levels := v_queue.prioritized and v_partition_id is null;
    v_level_ids := case when v_in_levels then rouse.level_ids(v_queue.id) else '{}' end;
    v_level_end := null;
    v_had_level := array_fill(false, array[v_waiters]);

    for v_round in 1..v_rounds_max loop
      v_wanted := case when v_allowed > 0 and v_call_bytes > 0 then rouse.lanes_wanted(v_left, v_lanes_left, p_batches) else 0 end;
      exit when v_wanted = 0;
      if v_in_levels then
        v_lanes := rouse.lock_levels(v_group_id, v_level_ids);
        -- This must be a new statement: a lane that was locked may be free now.
        v_level_end := rouse.first_level_missed(v_group_id, v_level_ids, v_lanes);
        v_lanes := array(select i from unnest(v_lanes) i where (i >= v_level_end) is not true order by i);
      else
        -- Lanes that offer nothing (held by a failed message, or waiting for their window buffer) are skipped
        -- in ever larger steps.
        v_wanted := least(v_wanted * v_more, 1000);
        v_more := case when v_found = 0 then v_more * 2 else 1 end;
        -- This statement locks lanes. Later statements read them, and see everything that was committed before
        -- the lock. Drained lanes that are still ready are skipped without a lock; in a new group all lanes
        -- start ready.
        v_lanes := array(
          select l.partition_id from rouse.lanes l
          cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
          where l.group_id = v_group_id and l.ready and l.lease_id is null and l.blocked_until is null
            and l.partition_id >= v_low and l.partition_id <= v_high
            and (p.head > greatest(l.next, p.tail) or exists (
              select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = v_group_id))
          order by l.group_id, l.partition_id
          limit v_wanted
          for no key update of l skip locked);
      end if;
      -- barrier: pop-locked
      -- configure locks the lanes before it changes the ordering. So if the version is unchanged here, the
      -- ordering stays the same until this pop ends.
      if cardinality(v_lanes) > 0 and not exists (select from rouse.queues q where q.id = v_queue.id and q.version = v_queue.version) then
        perform rouse.raise('RS001', 'retry', 'the queue was configured while it was popped');
      end if;
      v_seen := v_seen || v_lanes;
      foreach v_lane_id in array v_lanes loop
        v_lane := rouse.lane_offer(v_queue, v_group_id, v_lane_id, v_now);
        -- barrier: pop-offered
        v_ordered := rouse.is_ordered(v_queue.ordering, v_lane.partition);
        v_partition := rouse.shown_partition(v_lane.partition);
        v_next := v_lane.next;
        v_lease_id := null;
        v_tried := 0;
        v_is_named := v_partition is not null;
        v_lane_taken := 0;
        v_lane_tokens := v_end;
        v_lane_room := v_end;
        if v_queue.partition_rate_limit > 0 and v_is_named then
          select l.rate_tat into v_full_at from rouse.lanes l where l.partition_id = v_lane_id and l.group_id = v_group_id;
          v_lane_tokens := rouse.rate_tokens(v_queue.partition_rate_limit, v_queue.partition_rate_per_ms, v_full_at, v_now);
        end if;
        if v_queue.partition_in_flight_max > 0 and v_is_named then
          v_lane_room := v_queue.partition_in_flight_max - case when v_ordered then 0 else rouse.held_in_lane(v_lane_id, v_group_id) end;
        end if;
        v_lane_allowed := least(v_lane_tokens, v_lane_room);
        -- Waiters take turns: each gets one lane before any gets a second.
        while v_lane.offered > 0 and v_allowed > 0 and v_lane_allowed > 0 and v_call_bytes > 0 and v_tried < v_waiters loop
          v_tried := v_tried + 1;
          if v_left[v_turn] > 0 and v_lanes_left[v_turn] > 0 then
            v_take := least(v_lane.offered, v_left[v_turn], v_allowed, v_lane_allowed);
            v_each := null;
            if p_lease_each[v_turn] then
              -- Two live leases on an ordered lane would break its order.
              v_take := case when v_ordered then 1 else v_take end;
              v_each := array(select gen_random_uuid() from generate_series(1, v_take));
            end if;
            v_budget := least(coalesce(v_bytes[v_turn], p_bytes_max), v_call_bytes);
            v_must := v_found = 0 or (v_left[v_turn] = p_batches[v_turn] and v_call_bytes >= p_bytes_max);
            v_lease_id := coalesce(v_ids[v_turn], gen_random_uuid());
            -- Rows are returned before they are leased, and only returned rows are leased. The lane is
            -- locked, so no other call delivers them meanwhile.
            if v_lane.again_seq is not null then
              select a.from_seq, a.to_seq, a.members, a.taken, a.bytes into v_from, v_to, v_bits, v_take, v_used
              from rouse.take_again(v_group_id, v_lane_id, v_lane.again_seq, v_lane.attempt, v_take,
                v_ordered and v_queue.on_failure = 'hold', case when v_must then null else v_budget end, p_bytes_max,
                v_lane.options_until, v_now) a;
              v_lane.offered := 0;
              return query
              select null::text, v_turn, coalesce(v_each[row_number() over (order by m.seq)], v_lease_id), v_queue.name, v_lane_id, v_partition,
                v_lane.attempt, date_part('epoch', v_now) * 1000 + coalesce(p_leases_ms[v_turn], v_queue.lease_ms),
                m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
              from rouse.messages m
              where m.partition_id = v_lane_id and m.seq >= v_from and m.seq <= v_to
                and get_bit(v_bits, (m.seq - v_from)::integer) = 1
              order by m.seq;
            else
              v_from := v_next;
              return query
              select null::text, v_turn, coalesce(v_each[m.n], v_lease_id), case when m.n = 1 or v_each is not null then v_queue.name end, v_lane_id,
                case when m.n = 1 or v_each is not null then v_partition end, case when m.n = 1 or v_each is not null then v_lane.attempt end,
                case when m.n = 1 or v_each is not null then date_part('epoch', v_now) * 1000 + coalesce(p_leases_ms[v_turn], v_queue.lease_ms) end,
                m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
              from (
                select m.*, row_number() over w as n,
                  sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) over w as bytes
                from rouse.messages m
                where m.partition_id = v_lane_id and m.seq >= v_from and m.seq < v_from + v_take
                  and (v_lane.options_until <= v_from
                    or not exists (select from rouse.message_options o
                      where o.partition_id = v_lane_id and o.seq = m.seq and (o.cancelled_at is not null or o.expires_at <= v_now)))
                window w as (order by m.seq rows unbounded preceding)
              ) m
              where m.bytes <= v_budget or (v_must and m.n = 1)
              order by m.seq;
              get diagnostics v_returned = row_count;
              v_to := v_from + v_take - 1;
              v_bits := null;
              v_used := 0;
              if v_returned < v_take then
                select t.to_seq, t.members, t.bytes into v_to, v_bits, v_used
                from rouse.part_taken(v_lane_id, v_from, v_to, v_budget, v_must, v_now) t;
              elsif v_bytes is not null then
                select sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) into v_used
                from rouse.messages m where m.partition_id = v_lane_id and m.seq >= v_from and m.seq <= v_to;
              end if;
              v_take := v_returned;
              v_next := v_to + 1;
              v_lane.offered := case when v_ordered or v_take = 0 then 0 else least(v_lane.head - v_next, 1000000) end;
            end if;
            if v_take = 0 then
              -- Either nothing more fits, or rows are missing from the log. The next call continues after the
              -- missing rows.
              v_contended := true;
              v_lease_id := null;
              if v_found > 0 then
                v_lanes_left[v_turn] := 0;
              end if;
            else
              v_ids[v_turn] := case when v_each is null then v_lease_id end;
              v_bits := coalesce(v_bits, rpad('1', v_take, '1')::varbit);
              v_expires_at := v_now + coalesce(p_leases_ms[v_turn], v_queue.lease_ms) * interval '1 millisecond';
              if p_auto_acks[v_turn] then
                if v_queue.full_history then
                  perform rouse.record_completed(v_lane_id, v_group_id, v_lane.attempt, p_holders[v_turn], v_now, rouse.held_seqs(v_from, v_bits), v_now);
                end if;
                v_lease_id := null;
              elsif v_each is null then
                insert into rouse.leases (id, partition_id, group_id, from_seq, to_seq, unacked, attempt, ordered, limited, holder,
                  delivered_at, expires_at, lane_limited, recorded)
                values (v_lease_id, v_lane_id, v_group_id, v_from, v_to, v_bits, v_lane.attempt,
                  v_ordered, v_queue.in_flight_max > 0, p_holders[v_turn], v_now,
                  v_expires_at,
                  v_queue.partition_in_flight_max > 0 and v_is_named and not v_ordered, v_queue.full_history);
              else
                insert into rouse.leases (id, partition_id, group_id, from_seq, to_seq, unacked, attempt, ordered, limited, holder,
                  delivered_at, expires_at, lane_limited, recorded)
                select v_each[h.n], v_lane_id, v_group_id, h.seq, h.seq, '1', v_lane.attempt,
                  v_ordered, v_queue.in_flight_max > 0, p_holders[v_turn], v_now,
                  v_expires_at,
                  v_queue.partition_in_flight_max > 0 and v_is_named and not v_ordered, v_queue.full_history
                from unnest(rouse.held_seqs(v_from, v_bits)) with ordinality h(seq, n);
                v_lease_id := v_each[1];
              end if;
              -- barrier: pop-leased
              v_found := v_found + v_take;
              v_left[v_turn] := v_left[v_turn] - v_take;
              if v_in_levels then
                v_had_level[v_turn] := true;
              else
                v_lanes_left[v_turn] := v_lanes_left[v_turn] - 1;
              end if;
              v_allowed := v_allowed - v_take;
              v_lane_allowed := v_lane_allowed - v_take;
              v_lane_taken := v_lane_taken + v_take;
              if v_bytes is not null then
                v_call_bytes := v_call_bytes - v_used;
                v_bytes[v_turn] := v_bytes[v_turn] - v_used;
                if v_bytes[v_turn] <= 0 then
                  v_lanes_left[v_turn] := 0;
                end if;
              end if;
            end if;
          end if;
          v_turn := v_turn % v_waiters + 1;
        end loop;

        if v_queue.partition_rate_limit > 0 and v_is_named then
          v_full_at := rouse.rate_after(v_queue.partition_rate_limit, v_queue.partition_rate_per_ms, v_full_at, v_now, v_lane_taken);
          -- A lane without messages is not blocked: nothing waits for the end of the block.
          if v_lane_tokens = v_lane_taken and (v_next < v_lane.head or exists (
            select from rouse.redeliveries r where r.partition_id = v_lane_id and r.group_id = v_group_id and r.announced))
          then
            v_lane.blocked_until := greatest(v_lane.blocked_until,
              rouse.rate_opens_at(v_queue.partition_rate_limit, v_queue.partition_rate_per_ms, v_full_at));
            v_opens_at := least(v_opens_at, v_lane.blocked_until);
          end if;
        end if;

        -- A full lane leaves the index of pops until a part of its leases ends. The held messages are counted
        -- again here, because the pop does not hold messages that it acknowledges on delivery.
        if v_lane_room <= v_lane_taken and not v_ordered
           and rouse.held_in_lane(v_lane_id, v_group_id) >= v_queue.partition_in_flight_max then
          v_lane.blocked_until := 'infinity';
        end if;

        -- Settle: clears `ready` of a drained lane, unless its partition is locked, because then a push may
        -- be in progress. Partitions are locked in ascending order only, as pushes lock them, because SKIP
        -- LOCKED waits in one race: the call that updated the row commits, and another call locks the new
        -- version before this pop does. The order prevents most deadlocks in that race. One deadlock remains
        -- possible, because PostgreSQL locks a row before it evaluates the condition on the row again: the
        -- pop may hold a lane that was just leased to another consumer. The lock_timeout of the pop ends this
        -- deadlock (docs/decisions/0006-skip-locked-can-wait.md). A lane that is not settled stays ready,
        -- which does no harm: another pop settles it.
        v_settled := false;
        if v_next >= v_lane.head and v_lane.blocked_until is null and v_lane_id > v_settled_to then
          perform from rouse.partitions p where p.id = v_lane_id for no key update skip locked;
          v_settled := found;
          v_settled_to := v_lane_id;
        end if;
        -- barrier: pop-settling
        -- This must be a new statement: it then sees the new head of every push that had locked the partition
        -- before.
        update rouse.lanes l
        set next = v_next, lease_id = case when v_ordered then v_lease_id end, blocked_until = v_lane.blocked_until,
          rate_tat = case when v_queue.partition_rate_limit > 0 and v_is_named then v_full_at end,
          ready = not (v_settled
            and v_next >= (select p.head from rouse.partitions p where p.id = v_lane_id)
            and not exists (select from rouse.redeliveries r
              where r.partition_id = v_lane_id and r.group_id = v_group_id and r.announced))
        where l.partition_id = v_lane_id and l.group_id = v_group_id;
        if not found then
          perform rouse.raise('RS001', 'retry', 'a lane was deleted while it was popped');
        end if;
        -- barrier: pop-written
        if v_in_levels and not v_ordered and v_lane.blocked_until is null and (v_next < v_lane.head or exists (
          select from rouse.redeliveries r where r.partition_id = v_lane_id and r.group_id = v_group_id and r.announced))
        then
          v_level_end := v_lane_id;
          exit;
        end if;
      end loop;
      if v_in_levels then
        -- All levels count as one partition.
        for i in 1..v_waiters loop
          v_lanes_left[i] := greatest(v_lanes_left[i] - v_had_level[i]::integer, 0);
        end loop;
        v_in_levels := false;
        v_contended := v_contended or v_level_end is not null;
        exit when v_contended;
        continue;
      end if;

      v_low := coalesce(v_lanes[cardinality(v_lanes)] + 1, v_low);
      if cardinality(v_lanes) < v_wanted then
        v_is_end := v_partition_id is not null or v_high < v_end or p_after = 0;
        exit when v_is_end;
        v_low := 0;              -- continue with the lanes before the start
        v_high := p_after;
      end if;
      v_contended := v_contended or v_round = v_rounds_max;
    end loop;

    -- A ready lane that was not seen is either drained, or held by another call. In the second case it may
    -- have messages.
    if v_is_end and exists (
      select from rouse.lanes l
      where l.group_id = v_group_id and l.ready and l.lease_id is null and l.blocked_until is null
        and l.partition_id >= coalesce(v_partition_id, 0) and l.partition_id <= coalesce(v_partition_id, v_end)
        and l.partition_id <> all (v_seen))
    then
      v_contended := v_contended or (v_found = 0 and v_allowed > 0 and rouse.is_lane_passed_over(v_group_id, v_partition_id, v_seen));
      perform rouse.settle_drained(v_group_id, v_partition_id, v_seen);
    end if;
    if v_queue.rate_limit > 0 then
      v_opens_at := least(v_opens_at, rouse.take_rate(v_queue, v_group_id, v_now, v_tokens, v_found - v_before));
    end if;
    exit when not (0 < any (v_left));
  end loop;

  if not p_durable and not v_created then
    v_setting := set_config('synchronous_commit', 'off', true);
  end if;
  created_ms := date_part('epoch', v_now) * 1000;
  expires_ms := rouse.epoch_ms(v_opens_at);
  status := case when v_found > 0 then 'messages' when v_contended then 'contended' when v_paused then 'paused' else 'empty' end;
  return next;
end $$;
