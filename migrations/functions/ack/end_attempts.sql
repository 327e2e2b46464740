-- Records attempts that did not complete, and decides what happens to their messages. Below the retry limit
-- the messages are redelivered. At the limit they are given up (give_up), or dropped if the queue neither keeps
-- dead letters nor moves them. An ack with status dlq gives up a message of any queue. Limit and delays are
-- those of the message, or else of its queue.
-- Parameters: the lease that held the messages; their seqs, in order; how the attempt ended: failed, expired,
--   retry or dlq; error code and text; a delay in ms that replaces all others; the time now.
-- Result: how many of the messages were given up. Dropped messages do not count: the caller treats them as
--   redelivered, which costs one check of the lane and does no harm.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.end_attempts(
  p_lease rouse.leases, p_seqs bigint[], p_outcome text, p_error_code text, p_error_message text, p_delay_ms bigint, p_now timestamptz
) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_queue rouse.queues;
  v_own rouse.queues;
  v record;
  v_given_up integer := 0;
begin
  if p_outcome not in ('failed', 'expired', 'retry', 'dlq') then
    perform rouse.raise('RS400', 'invalid_status', format('unknown ack status "%s"', p_outcome), '{"field": "status"}');
  end if;
  if p_delay_ms < 0 then
    perform rouse.raise('RS400', 'invalid_delay', 'a delay cannot be negative', '{"field": "delayMs"}');
  end if;
  select q.* into v_queue
  from rouse.groups g join rouse.queues q on q.id = g.queue_id where g.id = p_lease.group_id;
  if not found then
    return 0;  -- the group was deleted during a pop: nothing to do
  end if;
  if p_seqs[1] >= (select p.options_until from rouse.partitions p where p.id = p_lease.partition_id) then
    return rouse.end_attempts_alike(v_queue, p_lease, p_seqs, p_outcome, p_error_code, p_error_message, p_delay_ms, p_now);
  end if;
  for v in
    select array_agg(s.seq order by s.seq) as seqs, o.retry_limit, o.retry_backoff_ms
    from unnest(p_seqs) s(seq)
    left join rouse.message_options o on o.partition_id = p_lease.partition_id and o.seq = s.seq
    group by o.retry_limit, o.retry_backoff_ms order by min(s.seq)
  loop
    v_own := v_queue;
    v_own.retry_limit := coalesce(v.retry_limit, v_queue.retry_limit);
    if v.retry_backoff_ms is not null then
      v_own.retry_backoff := null;
      v_own.retry_backoff_ms := v.retry_backoff_ms;
    end if;
    v_given_up := v_given_up
      + rouse.end_attempts_alike(v_own, p_lease, v.seqs, p_outcome, p_error_code, p_error_message, p_delay_ms, p_now);
  end loop;
  return v_given_up;
end $$;

-- The same for messages with the same retry limit and delays.
-- Parameters: the queue, with this limit and these delays; then as end_attempts. Result: as end_attempts.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.end_attempts_alike(
  p_queue rouse.queues, p_lease rouse.leases, p_seqs bigint[], p_outcome text, p_error_code text, p_error_message text,
  p_delay_ms bigint, p_now timestamptz
) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_queue constant rouse.queues := p_queue;
  v_partition rouse.partitions;
  v_due_at timestamptz := p_now;
  v_ends_at timestamptz;
  v_over boolean;    -- this was the last attempt
  v_keeps boolean;   -- what is given up is stored somewhere
begin
  v_over := p_outcome = 'dlq' or (p_outcome in ('failed', 'expired') and p_lease.attempt > v_queue.retry_limit);
  v_keeps := p_outcome = 'dlq' or v_queue.dead_letter or v_queue.dead_letter_to is not null;
  insert into rouse.attempts (partition_id, seq, group_id, attempt, outcome, error_code, error_message, holder, delivered_at, ended_at, final)
  select p_lease.partition_id, s, p_lease.group_id, p_lease.attempt, p_outcome, p_error_code, left(p_error_message, 10000), p_lease.holder, p_lease.delivered_at, p_now,
    case when v_over then case when v_keeps then 'dead' else 'dropped' end end
  from unnest(p_seqs) s;

  if v_over then
    if v_keeps then
      perform rouse.give_up(v_queue, p_lease, p_seqs, p_error_code, p_error_message, p_now);
    end if;
    return case when v_keeps then cardinality(p_seqs) else 0 end;
  end if;

  if p_outcome <> 'expired' then
    v_due_at := p_now + interval '1 millisecond' * coalesce(p_delay_ms,
      case when p_outcome = 'failed' then rouse.retry_delay_ms(v_queue, p_lease.attempt) else 0 end);
  end if;
  insert into rouse.redeliveries (partition_id, group_id, seq, attempt, alone, due_at, announced, error_code, error_message)
  select p_lease.partition_id, p_lease.group_id, s, p_lease.attempt - case when p_outcome = 'retry' then 1 else 0 end,
    p_outcome = 'expired', v_due_at, v_due_at <= p_now, p_error_code, left(p_error_message, 10000)
  from unnest(p_seqs) s
  -- The row exists already if a redrive inserted it while the message was leased again after a seek. One
  -- redelivery is enough.
  on conflict on constraint redeliveries_pkey do nothing;
  -- A failed message holds its lane: nothing behind it is delivered until it is due, or too old.
  -- A lease from before the ordering was loosened holds it no longer.
  if v_due_at > p_now and p_lease.ordered and v_queue.on_failure = 'hold' then
    select p.* into v_partition from rouse.partitions p where p.id = p_lease.partition_id;
  end if;
  if v_partition.id is not null and rouse.is_ordered(v_queue.ordering, v_partition.name) then
    if v_queue.ttl_ms > 0 or v_queue.wait_ms_max > 0 or p_seqs[1] < v_partition.options_until then
      select rouse.ends_at(r, v_queue) into v_ends_at from rouse.redeliveries r
      where r.partition_id = p_lease.partition_id and r.group_id = p_lease.group_id and r.seq = p_seqs[1];
    end if;
    update rouse.lanes l set blocked_until = least(l.blocked_until, v_due_at, v_ends_at)
    where l.partition_id = p_lease.partition_id and l.group_id = p_lease.group_id and (v_ends_at <= p_now) is not true
      and not exists (select from rouse.redeliveries r  -- an earlier message that is deliverable now
        where r.partition_id = p_lease.partition_id and r.group_id = p_lease.group_id and r.seq < p_seqs[1] and r.announced);
  elsif v_due_at <= p_now then
    -- This message may come before the one that the lane waits for. The next pop blocks the lane again if
    -- needed.
    update rouse.lanes l set blocked_until = null
    where l.partition_id = p_lease.partition_id and l.group_id = p_lease.group_id and l.blocked_until is not null;
  end if;
  return 0;
end $$;

-- The delay of a queue before the next attempt.
-- Parameters: the queue, the number of attempts so far. Result: ms. Locks: none.
create or replace function rouse.retry_delay_ms(p_queue rouse.queues, p_attempt integer) returns bigint
language plpgsql volatile
as $$
begin
  if p_queue.retry_backoff is null then
    return p_queue.retry_backoff_ms[least(p_attempt, cardinality(p_queue.retry_backoff_ms))];
  end if;
  return rouse.backoff_ms(p_queue.retry_backoff, p_attempt, random());
end $$;

-- A delay that grows by a factor with each attempt, up to a maximum. Jitter shortens it by a random part: by
-- up to the given share, `true` by up to half.
-- Parameters: retryBackoff with all its fields, the number of attempts so far, a random number from 0 to 1.
-- Result: ms. Locks: none.
create or replace function rouse.backoff_ms(p_backoff jsonb, p_attempt integer, p_random double precision) returns bigint
language sql immutable
as $$
  -- A power that exceeds the maximum is not computed: it could exceed the range of the type.
  select round((1 - b.share * p_random) * case
    when (p_attempt - 1) * ln(b.factor) >= ln(b.max_ms / b.base_ms) then b.max_ms
    else b.base_ms * power(b.factor, p_attempt - 1) end)::bigint
  from (
    select (p_backoff ->> 'baseMs')::float8 as base_ms, (p_backoff ->> 'factor')::float8 as factor, (p_backoff ->> 'maxMs')::float8 as max_ms,
      case p_backoff ->> 'jitter' when 'true' then 0.5 when 'false' then 0 else (p_backoff ->> 'jitter')::float8 end as share
  ) b
$$;
