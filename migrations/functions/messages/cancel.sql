-- Cancels a message that no group holds or has ended. A cancelled message is never delivered. A group that
-- began behind the message, or was moved past it, counts as one that has ended it: what it got before a seek is
-- not known. The message keeps its dedupe key, so that an attempt of its push that comes late is a duplicate.
-- Parameters: the id; the place that it names, or nulls.
-- Result: one row with the outcome: cancelled (also if it was before), leased (with the expiry of the lease in
--   ms since 1970), finished, or not_found. Then rows with wake hints for lanes that the message held.
-- Locks: a scheduled message, with SKIP LOCKED: if it is locked, the call raises RS001, and the repeat finds it
--   in the log. Otherwise the queue FOR SHARE, so that no group is created meanwhile, the partition, and all its
--   lanes by group. A pop decides under the lane's lock, so it either delivered the message before, or skips it.
create or replace function rouse.cancel_message(p_id uuid, p_partition_id bigint, p_seq bigint)
returns table (outcome text, lease_expires_ms double precision, hint rouse.wake_hint)
language plpgsql
set lock_timeout = '700ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_place record;
  v_now timestamptz;
  v_queue rouse.queues;
  v_partition rouse.partitions;
  v_message rouse.messages;
  v_group record;
begin
  perform rouse.raise_durability();
  if rouse.cancel_scheduled(p_id) or exists (select from rouse.cancelled c where c.id = p_id) then
    outcome := 'cancelled';
    return next;
    return;
  end if;
  -- barrier: cancel-not-scheduled
  v_place := rouse.place_of(p_id, p_partition_id, p_seq);
  select q.* into v_queue from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = v_place.partition_id
  for share of q;
  if found then
    select p.* into v_partition from rouse.partitions p where p.id = v_place.partition_id for no key update;
  end if;
  if v_partition.id is not null then
    perform from rouse.lanes l where l.partition_id = v_partition.id order by l.group_id for no key update;
    -- barrier: cancel-locked
    -- A new statement, which sees what was committed before the locks.
    select m.* into v_message from rouse.messages m where m.partition_id = v_place.partition_id and m.seq = v_place.seq;
  end if;
  if v_message.id is null then
    outcome := case when exists (select from rouse.dead_letters d where d.message_id = p_id) then 'finished' else 'not_found' end;
    return next;
    return;
  end if;
  outcome := 'cancelled';
  if exists (select from rouse.message_options o
    where o.partition_id = v_message.partition_id and o.seq = v_message.seq and o.cancelled_at is not null) then
    return next;
    return;
  end if;
  for v_group in
    select rouse.message_status(g.id, l.next, v_message.partition_id, v_message.seq) as status, s.expires_at
    from rouse.groups g
    join rouse.lanes l on l.partition_id = v_message.partition_id and l.group_id = g.id
    left join lateral (
      select max(s.expires_at) as expires_at from rouse.leases_of_lane(v_message.partition_id, g.id) s
      where v_message.seq between s.from_seq and s.to_seq and get_bit(s.unacked, (v_message.seq - s.from_seq)::integer) = 1) s on true
    where g.queue_id = v_queue.id
  loop
    if v_group.status = 'leased' then
      outcome := 'leased';
      lease_expires_ms := greatest(lease_expires_ms, date_part('epoch', v_group.expires_at) * 1000);
    elsif v_group.status in ('completed', 'dead') and outcome = 'cancelled' then
      outcome := 'finished';
    end if;
  end loop;
  if outcome = 'cancelled' and v_message.seq < v_partition.tail
     and not exists (select from rouse.redeliveries r where r.partition_id = v_message.partition_id and r.seq = v_message.seq) then
    outcome := 'not_found';  -- it was purged
  end if;
  return next;
  if outcome <> 'cancelled' then
    return;
  end if;
  v_now := rouse.now();
  insert into rouse.message_options (partition_id, seq, cancelled_at) values (v_message.partition_id, v_message.seq, v_now)
  on conflict on constraint message_options_pkey do update set cancelled_at = excluded.cancelled_at;
  update rouse.partitions p set options_until = greatest(p.options_until, v_message.seq + 1) where p.id = v_message.partition_id;
  outcome := null;
  for hint in
    with gone as (
      delete from rouse.redeliveries r where r.partition_id = v_message.partition_id and r.seq = v_message.seq returning r.group_id
    ), opened as (
      -- The message may have held its lane.
      update rouse.lanes l set ready = true, blocked_until = null
      from gone g where l.partition_id = v_message.partition_id and l.group_id = g.group_id
      returning l.group_id, l.next
    )
    select v_queue.name, v_partition.name, g.name, v_queue.namespace, v_queue.task, greatest(v_partition.head - o.next, 1)
    from opened o join rouse.groups g on g.id = o.group_id
  loop
    return next;
  end loop;
  -- barrier: cancel-written
end $$;

-- Cancels a message that is not in the log yet. If its push took a dedupe key, the message keeps it. Keys of SQL
-- producers are checked when their message becomes due, so theirs is not taken.
-- Parameters: its id. Result: whether it was scheduled. Locks: its row, with SKIP LOCKED. If another call holds
--   it, for example a promotion, RS001 is raised.
create or replace function rouse.cancel_scheduled(p_id uuid) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v rouse.scheduled;
begin
  select s.* into v from rouse.scheduled s where s.message_id = p_id for update skip locked;
  if not found then
    if exists (select from rouse.scheduled s where s.message_id = p_id) then
      perform rouse.raise('RS001', 'retry', 'the message was promoted while it was cancelled');
    end if;
    return false;
  end if;
  -- barrier: cancel-scheduled-locked
  delete from rouse.scheduled s where s.id = v.id;
  insert into rouse.cancelled (id, queue, partition, due_at, transaction_id, trace_id, payload, headers, created_at, cancelled_at, options)
  values (p_id, v.queue, v.partition, v.due_at, v.transaction_id, v.trace_id, v.payload, v.headers, v.created_at, rouse.now(), v.options);
  return true;
end $$;

-- Makes a scheduled message due, or a message that waits for a retry.
-- Parameters: the id; the place that it names, or nulls.
-- Result: one row with the outcome: scheduled or retrying (it is due now), not_scheduled, or not_found. Then
--   rows with wake hints for retries. The caller promotes scheduled messages.
-- Locks: as cancel_message; in the log only the lanes by group.
create or replace function rouse.run_now(p_id uuid, p_partition_id bigint, p_seq bigint)
returns table (outcome text, hint rouse.wake_hint)
language plpgsql
set lock_timeout = '700ms'
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_id bigint;
  v_place record;
begin
  perform rouse.raise_durability();
  select s.id into v_id from rouse.scheduled s where s.message_id = p_id for no key update skip locked;
  if found then
    update rouse.scheduled s set due_at = rouse.now() where s.id = v_id and s.due_at > rouse.now();
    outcome := 'scheduled';
    return next;
    return;
  elsif exists (select from rouse.scheduled s where s.message_id = p_id) then
    perform rouse.raise('RS001', 'retry', 'the message was promoted meanwhile');
  end if;
  v_place := rouse.place_of(p_id, p_partition_id, p_seq);
  perform from rouse.lanes l where l.partition_id = v_place.partition_id order by l.group_id for no key update;
  -- barrier: run-now-locked
  update rouse.redeliveries r set announced = true, due_at = least(r.due_at, rouse.now())
  where r.partition_id = v_place.partition_id and r.seq = v_place.seq;
  outcome := case when found then 'retrying'
    when exists (select from rouse.find_by_id(p_id, p_partition_id, p_seq)) then 'not_scheduled' else 'not_found' end;
  return next;
  if outcome <> 'retrying' then
    return;
  end if;
  outcome := null;
  for hint in
    with opened as (
      update rouse.lanes l set ready = true, blocked_until = null
      where l.partition_id = v_place.partition_id and exists (
        select from rouse.redeliveries r
        where r.partition_id = l.partition_id and r.group_id = l.group_id and r.seq = v_place.seq)
      returning l.group_id
    )
    select q.name, p.name, g.name, q.namespace, q.task, 1::bigint
    from opened o
    join rouse.groups g on g.id = o.group_id
    join rouse.partitions p on p.id = v_place.partition_id
    join rouse.queues q on q.id = p.queue_id
  loop
    return next;
  end loop;
end $$;
