-- Steps of a pop that are not on its common path, or are easier to read separately.

-- The queues of a namespace and / or task, highest priority first.
-- Parameters: namespace, task (null: any; both null: none). Result: queue ids. Locks: none.
create or replace function rouse.queues_of(p_namespace text, p_task text) returns integer[]
language sql stable
as $$
  -- Two queries, so that a generic plan can use the index by namespace.
  select case
    when p_namespace is not null then array(
      select q.id from rouse.queues q where q.namespace = p_namespace and (p_task is null or q.task = p_task)
      order by q.priority desc, q.id)
    when p_task is not null then array(select q.id from rouse.queues q where q.task = p_task order by q.priority desc, q.id)
    else '{}' end
$$;

-- The queues of a namespace and / or task that a pop must visit: those in which the group has a lane to pop,
-- does not exist yet, or was not seen for a minute.
-- Parameters: namespace, task, the group's name, the time now. Result: queue ids, highest priority first.
-- Locks: none.
create or replace function rouse.queues_to_pop(p_namespace text, p_task text, p_group text, p_now timestamptz) returns integer[]
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return array(
    select t.id from unnest(rouse.queues_of(p_namespace, p_task)) with ordinality t(id, n)
    left join lateral (
      select g.id, g.last_seen_at from rouse.groups g where g.queue_id = t.id and g.name = p_group offset 0) g on true
    -- OFFSET 0 keeps this an index lookup. Without it PostgreSQL may read the ready lanes of all groups and
    -- search among them.
    where g.id is null or g.last_seen_at < p_now - interval '1 minute' or exists (
      select from rouse.lanes l where l.group_id = g.id and l.ready and l.lease_id is null and l.blocked_until is null offset 0)
    order by t.n);
end $$;

-- Finds the consumer group of a pop, or creates it at its first pop. Updates last_seen_at at most once a
-- minute, without waiting for a lock.
-- Parameters: the queue's id, the group's name, the subscription of a new group and its time, the time now.
-- Result: the group's id, and whether it was created.
-- Locks: the queue row if the group is new, otherwise none.
create or replace function rouse.group_to_pop(
  p_queue_id integer, p_group text, p_subscription text, p_from timestamptz, p_now timestamptz,
  out id integer, out created boolean
)
language plpgsql
as $$
declare
  v record;
begin
  select g.id, g.last_seen_at into v from rouse.groups g where g.queue_id = p_queue_id and g.name = p_group;
  if not found then
    if p_subscription not in ('all', 'new', 'from') or (p_subscription = 'from' and p_from is null) then
      perform rouse.raise('RS400', 'invalid_request', 'a subscription must be all, new, or from a time', '{"field": "subscriptionMode"}');
    end if;
    -- A crash must not lose the start of a subscription: the next pop would create the group again with a
    -- later start.
    perform rouse.raise_durability();
    id := rouse.subscribe(p_queue_id, p_group, case p_subscription when 'new' then coalesce(p_from, p_now) when 'from' then p_from end);
    created := true;
    return;
  elsif v.last_seen_at < p_now - interval '1 minute' then
    update rouse.groups u set last_seen_at = p_now
    where u.id = (select g.id from rouse.groups g where g.id = v.id for no key update skip locked);
  end if;
  id := v.id;
  created := false;
end $$;

-- Locks the consumer group of this name in every queue that limits messages in flight or has a rate. Waits as
-- long as other pops hold one of these rows.
-- Parameters: queue ids, the group's name. Result: nothing. Locks: those groups by id.
create or replace function rouse.lock_limited_groups(p_queue_ids integer[], p_group text) returns void
language plpgsql
set lock_timeout = 0
as $$
begin
  perform from rouse.groups g, rouse.queues q
  where q.id = any (p_queue_ids) and (q.in_flight_max > 0 or q.rate_limit > 0) and g.queue_id = q.id and g.name = p_group
  order by g.id for no key update of g;
end $$;

-- Refuses to go on with options that have changed: configure locks the groups before it changes a rate.
-- Parameters: the queue as the pop has read it. Result: nothing; or RS001.
-- Locks: none beyond the group, which the caller holds.
create or replace function rouse.check_version(p_queue rouse.queues) returns void
language plpgsql
as $$
begin
  -- barrier: pop-group-locked
  if not exists (select from rouse.queues q where q.id = p_queue.id and q.version = p_queue.version) then
    perform rouse.raise('RS001', 'retry', 'the queue was configured while it was popped');
  end if;
end $$;

-- The number of lanes a pop should read next: as many as the waiters without messages may take.
-- Parameters: per waiter, messages and lanes still wanted, messages wanted at first.
-- Result: the count, at most 1,000; 0 if every waiter has messages. Locks: none.
create or replace function rouse.lanes_wanted(p_left integer[], p_lanes_left integer[], p_batches integer[]) returns integer
language plpgsql immutable
as $$
declare
  v_wanted bigint := 0;
begin
  for i in 1..cardinality(p_left) loop
    if p_left[i] > 0 and p_left[i] = p_batches[i] then
      v_wanted := v_wanted + p_lanes_left[i];
    end if;
  end loop;
  return least(v_wanted, 1000);
end $$;

-- What a locked lane offers: fresh messages from `next`, or, if again_seq is set, messages to redeliver. A
-- lane offers nothing while a failed message holds it or its window buffer has not ended. The result then has
-- the time until which the lane is blocked. Messages older than the queue's ttl or maxWaitTimeSeconds are
-- skipped, both fresh messages and redeliveries, and so are messages that were cancelled or have expired.
-- Parameters: the queue, the group's id, the partition's id, the time now. Result: one row.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.lane_offer(
  p_queue rouse.queues, p_group_id integer, p_partition_id bigint, p_now timestamptz,
  out partition text, out next bigint, out head bigint, out offered integer, out attempt integer, out again_seq bigint,
  out blocked_until timestamptz, out options_until bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_waits boolean;
  v_oldest_ms constant bigint := case when p_queue.ttl_ms > 0 and p_queue.wait_ms_max > 0
    then least(p_queue.ttl_ms, p_queue.wait_ms_max) else p_queue.ttl_ms + p_queue.wait_ms_max end;
  v_quiet_at timestamptz;
  v_has_again boolean;
  v record;
begin
  select p.name, greatest(l.next, p.tail), p.head, 1, p.last_created_at + p_queue.window_ms * interval '1 millisecond',
    rouse.is_ordered(p_queue.ordering, p.name) and p_queue.on_failure = 'hold',
    exists (select from rouse.redeliveries r where r.partition_id = p_partition_id and r.group_id = p_group_id), p.options_until
  into strict partition, next, head, attempt, v_quiet_at, v_waits, v_has_again, options_until
  from rouse.lanes l, rouse.partitions p
  where l.partition_id = p_partition_id and l.group_id = p_group_id and p.id = p_partition_id;
  offered := 0;
  while v_has_again loop
    -- If a failed message holds its lane in this queue, the first redelivery is chosen even if it is not due
    -- yet.
    if v_waits then
      select r.seq, r.attempt + 1 as attempt, r.announced or r.due_at <= p_now as due, r.due_at,
        case when v_oldest_ms > 0 or r.seq < options_until then rouse.ends_at(r, p_queue) end as ends_at into v
      from rouse.redeliveries r
      where r.partition_id = p_partition_id and r.group_id = p_group_id
      order by r.seq limit 1;
    else
      select r.seq, r.attempt + 1 as attempt, true as due, r.due_at,
        case when v_oldest_ms > 0 or r.seq < options_until then rouse.ends_at(r, p_queue) end as ends_at into v
      from rouse.redeliveries r
      where r.partition_id = p_partition_id and r.group_id = p_group_id and r.announced
      order by r.seq limit 1;
    end if;
    exit when not found;
    if v.ends_at <= p_now then
      perform rouse.expire_again(p_queue, p_group_id, p_partition_id, v.seq, p_now);
      continue;
    elsif v.due then
      again_seq := v.seq;
      attempt := v.attempt;
      -- A message without an age limit is delivered alone, because those behind it may be too old.
      offered := case when v_oldest_ms > 0 and v.ends_at is null then 1 else 1000000 end;
    else
      blocked_until := least(v.due_at, v.ends_at);
    end if;
    return;
  end loop;
  if p_queue.window_ms > 0 and head > next and v_quiet_at > p_now then
    blocked_until := v_quiet_at;
    return;
  end if;
  if v_oldest_ms > 0 and head > next then
    next := rouse.seq_at(p_partition_id, next, head, p_now - v_oldest_ms * interval '1 millisecond');
  end if;
  if options_until > next then
    next := rouse.first_open(p_partition_id, next, head, p_now);
  end if;
  offered := least(head - next, 1000000);
end $$;

-- The messages of a lane that leases with an in-flight limit of the partition hold.
-- Parameters: partition and group. Result: the number. Locks: none beyond the lane, which the caller holds.
create or replace function rouse.held_in_lane(p_partition_id bigint, p_group_id integer) returns bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  return (
    select coalesce(sum(bit_count(s.unacked)), 0)
    from rouse.leases s where s.partition_id = p_partition_id and s.group_id = p_group_id and s.lane_limited);
end $$;

-- The first message of a range that is neither cancelled nor expired. It reads at most v_skipped_max messages;
-- the cursor keeps the progress, so that the next pop goes on from there.
-- Parameters: the partition, the first seq, the seq after the last one, the time now. Result: a seq. Locks: none.
create or replace function rouse.first_open(p_partition_id bigint, p_from bigint, p_to bigint, p_now timestamptz) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_skipped_max constant integer := 10000;
  v_to constant bigint := least(p_to, p_from + v_skipped_max);
begin
  return coalesce(
    (select g.seq from (select generate_series(p_from, v_to - 1) as seq) g
     where not exists (select from rouse.message_options o
       where o.partition_id = p_partition_id and o.seq = g.seq and (o.cancelled_at is not null or o.expires_at <= p_now)) limit 1),
    v_to);
end $$;

-- Takes rows from `redeliveries`: either one message that must be delivered alone, or several in seq order
-- that have the same number of attempts. Also deletes rows whose message is no longer in the log.
-- Parameters: group and partition; the first seq; the attempt of this delivery; the maximum number of
--   messages; whether a message that is not due yet holds the lane, so that none behind it is taken; the
--   maximum bytes of the first message (null: any) and of all messages together; the seq from which on no
--   message has options; the time now. A message that has expired ends the list: the next pop removes it.
-- Result: the first and the last seq, which seqs of the range are included, their number and bytes; nothing
--   is taken if the first message does not fit or no message is left.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.take_again(
  p_group_id integer, p_partition_id bigint, p_seq bigint, p_attempt integer, p_take integer, p_waits boolean,
  p_first_bytes_max bigint, p_bytes_max bigint, p_options_until bigint, p_now timestamptz,
  out from_seq bigint, out to_seq bigint, out members varbit, out taken integer, out bytes bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_span_max constant integer := 10000;
  v_seqs bigint[] := '{}';
  v_gone bigint[] := '{}';
  v record;
begin
  bytes := 0;
  for v in
    select r.seq, r.attempt, r.alone, r.announced, m.bytes
    from rouse.redeliveries r
    left join lateral (
      select octet_length(m.payload) + coalesce(octet_length(m.headers), 0) as bytes
      from rouse.messages m where m.partition_id = p_partition_id and m.seq = r.seq offset 0) m on true
    where r.partition_id = p_partition_id and r.group_id = p_group_id
      and r.seq >= p_seq and r.seq < p_seq + v_span_max and (p_waits or r.announced or r.seq = p_seq)
    order by r.seq
    limit p_take
  loop
    if v.bytes is null then
      v_gone := v_gone || v.seq;
      continue;
    end if;
    if cardinality(v_seqs) = 0 then
      exit when v.bytes > p_first_bytes_max or v.attempt + 1 <> p_attempt;
    else
      exit when v.alone or not v.announced or v.attempt + 1 <> p_attempt
        or bytes + v.bytes > least(p_bytes_max, coalesce(p_first_bytes_max, p_bytes_max))
        or (v.seq < p_options_until and exists (select from rouse.message_options o
          where o.partition_id = p_partition_id and o.seq = v.seq and o.expires_at <= p_now));
    end if;
    v_seqs := v_seqs || v.seq;
    bytes := bytes + v.bytes;
    exit when v.alone;
  end loop;
  delete from rouse.redeliveries r
  where r.partition_id = p_partition_id and r.group_id = p_group_id and r.seq = any (v_seqs || v_gone);
  taken := cardinality(v_seqs);
  from_seq := v_seqs[1];
  to_seq := v_seqs[taken];
  select string_agg(case when s = any (v_seqs) then '1' else '0' end, '' order by s)::varbit into members
  from generate_series(from_seq, to_seq) s;
end $$;

-- Computes which messages of a range of fresh messages a pop returned: as many as fit, except rows that are
-- missing from the log, and messages that were cancelled or have expired.
-- Parameters: partition, the range's first and last seq, the maximum bytes, whether the first message is
--   included whatever its size, and the time now.
-- Result: the last seq that the pop has handled, which seqs up to there were returned, and their bytes. If
--   the range has no rows, the pop has handled all of it. If the first row did not fit, the result is the seq
--   before the range.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.part_taken(
  p_partition_id bigint, p_from bigint, p_to bigint, p_bytes_max bigint, p_must boolean, p_now timestamptz,
  out to_seq bigint, out members varbit, out bytes bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_rows bigint;
  v_seqs bigint[];
begin
  select count(*), array_agg(m.seq order by m.seq) filter (where m.total <= p_bytes_max or (p_must and m.n = 1)),
    coalesce(max(m.total) filter (where m.total <= p_bytes_max or (p_must and m.n = 1)), 0)
  into v_rows, v_seqs, bytes
  from (
    select m.seq, row_number() over w as n, sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) over w as total
    from rouse.messages m
    where m.partition_id = p_partition_id and m.seq >= p_from and m.seq <= p_to
      and not exists (select from rouse.message_options o
        where o.partition_id = p_partition_id and o.seq = m.seq and (o.cancelled_at is not null or o.expires_at <= p_now))
    window w as (order by m.seq rows unbounded preceding)
  ) m;
  if v_seqs is null then
    to_seq := case when v_rows = 0 then p_to else p_from - 1 end;
    return;
  end if;
  to_seq := v_seqs[cardinality(v_seqs)];
  if cardinality(v_seqs) = to_seq - p_from + 1 then
    members := rpad('1', cardinality(v_seqs), '1')::varbit;
  else
    select string_agg(case when s = any (v_seqs) then '1' else '0' end, '' order by s)::varbit into members
    from generate_series(p_from, to_seq) s;
  end if;
end $$;

-- Whether any lane that a pop has not seen has messages. If so, another call holds that lane.
-- Parameters: the group, one partition or null for any, the partitions whose lanes were seen.
-- Result: a boolean. Locks: none.
create or replace function rouse.is_lane_passed_over(p_group_id integer, p_partition_id bigint, p_seen bigint[]) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return exists (
    select from rouse.lanes l
    cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
    where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
      and l.partition_id >= coalesce(p_partition_id, 0) and l.partition_id <= coalesce(p_partition_id, 9223372036854775807)
      and l.partition_id <> all (p_seen)
      and (p.head > greatest(l.next, p.tail) or exists (
        select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = p_group_id)));
end $$;

-- Settles drained lanes of a group, v_step at a time. All lanes of a new group start ready. If they were not
-- settled, every pop would have to skip the drained ones again. A lane whose partition is locked stays ready,
-- because a push may be in progress. Lanes that other calls hold also stay ready.
-- Parameters: the group, one partition or null for any, the partitions whose lanes the call has handled.
-- Result: the number of lanes. Locks: lanes, then their partitions by id, all with SKIP LOCKED.
create or replace function rouse.settle_drained(p_group_id integer, p_partition_id bigint, p_seen bigint[]) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_step constant integer := 1000;
  v_ms_max constant integer := 50;
  v_begun constant timestamptz := clock_timestamp();
  v_low bigint := coalesce(p_partition_id, 0);
  v_lanes bigint[];
  v_partitions bigint[];
  v_settled integer := 0;
begin
  loop
    v_lanes := array(
      select l.partition_id from rouse.lanes l
      cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
      where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
        and l.partition_id >= v_low and l.partition_id <= coalesce(p_partition_id, 9223372036854775807)
        and l.partition_id <> all (p_seen) and p.head <= greatest(l.next, p.tail)
        and not exists (select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = p_group_id)
      order by l.group_id, l.partition_id
      limit v_step
      for no key update of l skip locked);
    v_partitions := array(
      select p.id from rouse.partitions p where p.id = any (v_lanes) order by p.id for no key update skip locked);
    -- barrier: settle-drained-locked
    -- This must be a new statement: it then sees the new head of every push that had locked the partition
    -- before.
    update rouse.lanes l set ready = false
    from unnest(v_partitions) i(id)
    cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = i.id offset 0) p
    where l.partition_id = i.id and l.group_id = p_group_id and p.head <= greatest(l.next, p.tail)
      and not exists (select from rouse.redeliveries r where r.partition_id = i.id and r.group_id = p_group_id and r.announced);
    v_settled := v_settled + cardinality(v_partitions);
    exit when cardinality(v_lanes) < v_step or clock_timestamp() > v_begun + v_ms_max * interval '1 millisecond';
    v_low := v_lanes[v_step] + 1;
  end loop;
  return v_settled;
end $$;
