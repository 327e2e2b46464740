-- Reads messages without leasing them.

-- The leases of a lane. The lane names its lease if the queue is ordered; unordered leases have their own
-- index. No index has all leases by group.
-- Parameters: partition and group. Result: the leases. Locks: none.
create or replace function rouse.leases_of_lane(p_partition_id bigint, p_group_id integer) returns setof rouse.leases
language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
  select s.* from rouse.lanes l cross join lateral (
    select o.* from rouse.leases o where o.id = l.lease_id and o.partition_id = l.partition_id offset 0) s
  where l.partition_id = p_partition_id and l.group_id = p_group_id and s.group_id = p_group_id and s.ordered
  union all
  select s.* from rouse.leases s where s.partition_id = p_partition_id and s.group_id = p_group_id and not s.ordered
$$;

-- Whether a message in the log was cancelled.
-- Parameters: partition and seq. Result: a boolean. Locks: none.
create or replace function rouse.is_cancelled(p_partition_id bigint, p_seq bigint) returns boolean
language sql stable
as $$
  select exists (select from rouse.message_options o
    where o.partition_id = p_partition_id and o.seq = p_seq and o.cancelled_at is not null)
$$;

-- The status of a message for a group: cancelled, pending, leased, retrying (to be redelivered), dead or
-- completed.
-- Parameters: the group's id (null: no such group), the lane's next, the message's partition and seq.
-- Result: the status. Locks: none.
create or replace function rouse.message_status(p_group_id integer, p_next bigint, p_partition_id bigint, p_seq bigint) returns text
language sql stable
as $$
  select case
    when rouse.is_cancelled(p_partition_id, p_seq) then 'cancelled'
    when p_group_id is null then 'pending'
    when exists (select from rouse.redeliveries r where r.partition_id = p_partition_id and r.group_id = p_group_id and r.seq = p_seq)
      then 'retrying'
    when p_seq >= p_next then 'pending'
    when exists (
      select from rouse.leases_of_lane(p_partition_id, p_group_id) s
      where p_seq between s.from_seq and s.to_seq and get_bit(s.unacked, (p_seq - s.from_seq)::integer) = 1) then 'leased'
    when exists (select from rouse.dead_letters d where d.partition_id = p_partition_id and d.seq = p_seq and d.group_id = p_group_id)
      then 'dead'
    else 'completed'
  end
$$;

-- A page of a queue's log, by partition and seq.
-- Parameters: queue; partition (null: all); the group whose statuses are shown; a status, or null for all;
--   the partition and seq to continue after (0, 0: from the start); the maximum number of messages and the
--   maximum number of partitions to read; the times from and before which the messages were created (null:
--   any), by which the page is found. Messages below the tail of a partition may be older.
-- Result: the messages; then a last row without a seq, with the partition to continue in (null at the end).
--   RS404 if there is no such queue.
-- Locks: none.
create or replace function rouse.list_messages_v2(
  p_queue text, p_partition text, p_group text, p_status text, p_after_partition bigint, p_after_seq bigint, p_limit integer,
  p_partitions integer, p_from timestamptz, p_before timestamptz
) returns table (
  partition_id bigint, seq bigint, partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text, status text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_sort = off  -- the index returns a page of a partition in order, whatever size the planner assumes
as $$
#variable_conflict use_column
declare
  v_queue_id integer;
  v_group_id integer;
  v_names constant text[] := case when p_partition is not null then array[p_partition] end;
  v_lane record;
  v_from bigint;
  v_to bigint;
  v_at bigint;
  v_seqs bigint[];       -- the seqs, for a status that few messages have
  v_left integer := p_limit;
  v_looked integer := 0;
  v_count integer;
begin
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  select g.id into v_group_id from rouse.groups g where g.queue_id = v_queue_id and g.name = p_group;
  for v_lane in
    select p.id, rouse.shown_partition(p.name) as name, p.head, p.tail, coalesce(l.next, 1) as next
    from (
      -- There is no index by queue and id, and a scan of the index by id could read all partitions of other
      -- queues.
      select o.* from (select * from rouse.partitions where queue_id = v_queue_id and name = any (v_names) offset 0) o
      where o.id >= p_after_partition
      union all
      select o.* from (select * from rouse.partitions where queue_id = v_queue_id and v_names is null offset 0) o
      where o.id >= p_after_partition
      order by id limit p_partitions + 1
    ) p
    -- Lanes are looked up one by one, because the page may end in the first partition.
    left join lateral (select x.next from rouse.lanes x where x.partition_id = p.id and x.group_id = v_group_id offset 0) l on true
    order by p.id
  loop
    partition_id := v_lane.id;
    if v_looked = p_partitions or v_left = 0 then
      return next;
      return;
    end if;
    v_looked := v_looked + 1;
    v_from := case when v_lane.id = p_after_partition then p_after_seq + 1 else 0 end;
    v_to := v_lane.head;
    v_seqs := null;
    if p_from is not null then
      v_at := rouse.seq_at(v_lane.id, v_lane.tail, v_lane.head, p_from);
      v_from := case when v_at > v_lane.tail then greatest(v_from, v_at) else v_from end;
    end if;
    if p_before is not null then
      v_to := rouse.seq_at(v_lane.id, v_lane.tail, v_lane.head, p_before);
    end if;
    if p_status = 'pending' then
      v_from := greatest(v_from, v_lane.next);
    elsif p_status is not null then
      if p_status = 'completed' then
        v_to := least(v_to, v_lane.next);
      elsif p_status = 'retrying' then
        v_seqs := array(select r.seq from rouse.redeliveries r where r.partition_id = v_lane.id and r.group_id = v_group_id);
      elsif p_status = 'cancelled' then
        v_seqs := array(select o.seq from rouse.message_options o where o.partition_id = v_lane.id and o.cancelled_at is not null);
      elsif p_status = 'leased' then
        v_seqs := array(select unnest(rouse.held_seqs(s.from_seq, s.unacked)) from rouse.leases_of_lane(v_lane.id, v_group_id) s);
      else
        v_seqs := array(select d.seq from rouse.dead_letters d where d.partition_id = v_lane.id and d.group_id = v_group_id);
      end if;
      continue when cardinality(v_seqs) = 0;
    end if;
    return query
    select v_lane.id, m.seq, v_lane.name, rouse.message_id(m.id, v_lane.id, m.seq), m.created_at, m.transaction_id, m.trace_id, m.payload, m.headers, s.status
    from rouse.messages m, lateral (select rouse.message_status(v_group_id, v_lane.next, v_lane.id, m.seq) as status) s
    where m.partition_id = v_lane.id and m.seq >= v_from and m.seq < v_to and (v_seqs is null or m.seq = any (v_seqs))
      and (m.seq >= v_lane.tail or s.status not in ('completed', 'cancelled')) and (p_status is null or s.status = p_status)
    order by m.seq
    limit v_left;
    get diagnostics v_count = row_count;
    v_left := v_left - v_count;
    if v_left = 0 then
      partition_id := v_lane.id;
      return next;  -- the partition may have more
      return;
    end if;
  end loop;
  partition_id := null;
  return next;
end $$;

-- The same without times, for nodes of the previous release.
-- Parameters and result: as list_messages_v2. Locks: none.
create or replace function rouse.list_messages(
  p_queue text, p_partition text, p_group text, p_status text, p_after_partition bigint, p_after_seq bigint, p_limit integer,
  p_partitions integer default 1000
) returns table (
  partition_id bigint, seq bigint, partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text, status text
)
language sql stable
as $$
  select * from rouse.list_messages_v2(p_queue, p_partition, p_group, p_status, p_after_partition, p_after_seq, p_limit, p_partitions,
    null, null)
$$;

-- Messages of all partitions in the order of their creation, for callers that follow a queue. Messages of the
-- last 200 ms are left for the next call, so that messages whose transaction has not committed yet are not
-- missed.
-- Parameters: queue; partition (null: all); the time, partition and seq to continue after (a null time: from
--   now on); the maximum number of messages.
-- Result: the messages; then a last row without a seq, whose created_at is the time to continue after if no
--   message was returned. RS404 if there is no such queue.
-- Locks: none.
create or replace function rouse.follow_messages(
  p_queue text, p_partition text, p_after timestamptz, p_after_partition bigint, p_after_seq bigint, p_limit integer
) returns table (
  partition_id bigint, seq bigint, partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_until constant timestamptz := rouse.now() - interval '200 milliseconds';
  v_queue_id integer;
begin
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  if p_after is not null then
    return query
    select p.id, m.seq, rouse.shown_partition(p.name), rouse.message_id(m.id, p.id, m.seq), m.created_at, m.transaction_id, m.trace_id, m.payload, m.headers
    from rouse.partitions p
    cross join lateral (
      select x.* from rouse.messages x
      where x.partition_id = p.id and x.seq >= rouse.seq_at(p.id, p.tail, p.head, p_after) and x.created_at <= v_until
        and (x.created_at, x.partition_id, x.seq) > (p_after, p_after_partition, p_after_seq)
      order by x.seq
      limit p_limit
    ) m
    where p.queue_id = v_queue_id and p.last_created_at >= p_after and (p_partition is null or p.name = p_partition)
    order by m.created_at, p.id, m.seq
    limit p_limit;
  end if;
  created_at := greatest(p_after, v_until);
  return next;
end $$;
