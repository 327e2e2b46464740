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

-- Whether a message in the log is too old to be delivered: its own ttlMs has passed, or a limit of its queue.
-- Parameters: partition and seq. Result: a boolean. Locks: none.
create or replace function rouse.is_expired(p_partition_id bigint, p_seq bigint) returns boolean
language sql stable
as $$
  select exists (select from rouse.message_options o
    where o.partition_id = p_partition_id and o.seq = p_seq and o.expires_at <= rouse.now())
  or exists (
    select from rouse.partitions p, rouse.queues q, rouse.messages m
    where p.id = p_partition_id and q.id = p.queue_id and (q.ttl_ms > 0 or q.wait_ms_max > 0)
      and m.partition_id = p_partition_id and m.seq = p_seq and rouse.too_old(m, null, q, rouse.now()))
$$;

-- The status of a message for a group: cancelled, pending, leased, retrying (to be redelivered), dead or
-- completed. A message that has expired before it was delivered counts as completed.
-- Parameters: the group's id (null: no such group), the lane's next, the message's partition and seq; whether a
--   lease of the group holds it, which only counts if it was delivered.
-- Result: the status. Locks: none.
create or replace function rouse.status_in_lane(
  p_group_id integer, p_next bigint, p_partition_id bigint, p_seq bigint, p_is_held boolean
) returns text
language sql stable
as $$
  select case
    when rouse.is_cancelled(p_partition_id, p_seq) then 'cancelled'
    when p_group_id is null then case when rouse.is_expired(p_partition_id, p_seq) then 'completed' else 'pending' end
    when exists (select from rouse.redeliveries r where r.partition_id = p_partition_id and r.group_id = p_group_id and r.seq = p_seq)
      then 'retrying'
    when p_seq >= p_next then case when rouse.is_expired(p_partition_id, p_seq) then 'completed' else 'pending' end
    when p_is_held then 'leased'
    when exists (select from rouse.dead_letters d where d.partition_id = p_partition_id and d.seq = p_seq and d.group_id = p_group_id)
      then 'dead'
    else 'completed'
  end
$$;

-- The same for one message, whose lease is looked up.
-- Parameters and result: as status_in_lane. Locks: none.
create or replace function rouse.message_status(p_group_id integer, p_next bigint, p_partition_id bigint, p_seq bigint) returns text
language sql stable
as $$
  select rouse.status_in_lane(p_group_id, p_next, p_partition_id, p_seq, exists (
    select from rouse.leases_of_lane(p_partition_id, p_group_id) s
    where p_seq between s.from_seq and s.to_seq and get_bit(s.unacked, (p_seq - s.from_seq)::integer) = 1))
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
