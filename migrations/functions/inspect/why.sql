-- Facts that explain why a queue does not move; the caller turns them into sentences.

-- The facts of a queue and of its groups.
-- Parameters: queue, group (null: all).
-- Result: an object, times in ms since 1970; null if there is no such queue. Locks: none.
create or replace function rouse.why(p_queue text, p_group text default null) returns jsonb
language plpgsql stable
as $$
declare
  v_now constant timestamptz := rouse.now();
  v rouse.queues;
  v_scheduled record;
begin
  select q.* into v from rouse.queues q where q.name = p_queue;
  if not found then
    return null;
  end if;
  -- One query for the count and the minimum: for the minimum alone, PostgreSQL might search through the due
  -- times of all queues.
  select count(*) as count, min(s.due_at) as next_at into v_scheduled from rouse.scheduled s where s.queue = v.name;
  return jsonb_build_object(
    'now', rouse.epoch_ms(v_now), 'namespace', v.namespace, 'task', v.task, 'paused', v.paused, 'ordering', v.ordering,
    'sizeMax', v.size_max, 'size', case when v.size_max > 0 then rouse.queue_size(v.id) end, 'inFlightMax', v.in_flight_max,
    'partitionInFlightMax', v.partition_in_flight_max, 'rateLimit', v.rate_limit, 'ratePerMs', v.rate_per_ms,
    'partitionRateLimit', v.partition_rate_limit, 'partitionRatePerMs', v.partition_rate_per_ms, 'windowMs', v.window_ms,
    'copyOf', rouse.copied_from(),
    'evictMs', case when v.retention_enabled then least(nullif(v.retention_ms, 0), nullif(v.ttl_ms, 0), nullif(v.wait_ms_max, 0)) end,
    'messages', (select coalesce(sum(p.head - p.tail), 0) from rouse.partitions p where p.queue_id = v.id),
    'scheduled', v_scheduled.count,
    'nextDueAt', rouse.epoch_ms(v_scheduled.next_at),
    'groups', (select coalesce(jsonb_agg(rouse.why_group(v, g, v_now) order by g.name), '[]')
               from rouse.groups g where g.queue_id = v.id and (p_group is null or g.name = p_group)),
    'heldKeys', rouse.why_keys(v.id, p_group, v_now));
end $$;

-- Unique keys whose messages a group has begun, or that are not due yet: pushes with them are duplicates. Those of
-- ready messages are left out, because other reasons explain why these wait. At most v_keys_max keys are looked at.
-- Parameters: the queue's id, the group (null: all), the time. Result: an array of at most five objects. Locks: none.
create or replace function rouse.why_keys(p_queue_id integer, p_group text, p_now timestamptz) returns jsonb
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_keys_max constant integer := 100;
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('key', h.key, 'messageId', h.message_id, 'state', h.state,
      'consumerGroup', h.consumer_group, 'until', case when h.window_ms is not null then rouse.epoch_ms(h.expires_at) end)), '[]')
    from (
      select k.key, k.window_ms, k.expires_at, s.message_id, s.state, g.name as consumer_group
      from (
        select * from rouse.unique_keys u where u.queue_id = p_queue_id order by u.partition_id, u.key limit v_keys_max
      ) k
      cross join lateral rouse.unique_state(k::rouse.unique_keys, p_now) s
      left join lateral (
        select o.name from rouse.groups o join rouse.lanes l on l.group_id = o.id and l.partition_id = s.partition_id
        where o.queue_id = p_queue_id and rouse.message_status(o.id, l.next, s.partition_id, s.seq) in ('leased', 'retrying')
        order by o.name <> p_group, o.name limit 1
      ) g on true
      where s.state in ('scheduled', 'started')
      limit 5
    ) h);
end $$;

-- The facts of one group. A lane with messages is ready, leased, or blocked: because it is full
-- (maxInFlightPerPartition), its rate is used up (partitionRate), a failed message holds it, or it is
-- gathering (its window buffer has not ended).
-- Parameters: the queue, the group, the time. Result: an object. Locks: none.
create or replace function rouse.why_group(p_queue rouse.queues, p_group rouse.groups, p_now timestamptz) returns jsonb
language sql stable
as $$
  with lane as (
    select p.id, p.name, greatest(p.head - greatest(l.next, p.tail)
        - case when p.options_until > greatest(l.next, p.tail) then rouse.excluded_count(p.id, greatest(l.next, p.tail)) else 0 end, 0) as fresh,
      case when p.options_until > greatest(l.next, p.tail) then rouse.expired_count(p.id, greatest(l.next, p.tail)) else 0 end as expired,
      l.lease_id, l.blocked_until,
      case when l.lease_id is not null or l.blocked_until is null then null when l.blocked_until = 'infinity' then 'full'
        when p_queue.partition_rate_limit > 0 and (h.due_at <= p_now) is not false
          and rouse.rate_tokens(p_queue.partition_rate_limit, p_queue.partition_rate_per_ms, l.rate_tat, p_now) = 0 then 'rate'
        when h.seq is not null then 'held' else 'gathering' end as blocked_by,
      (select count(*) from rouse.redeliveries r where r.partition_id = p.id and r.group_id = l.group_id and r.announced) as again,
      h.seq as held_seq
    from rouse.partitions p
    join rouse.lanes l on l.partition_id = p.id and l.group_id = p_group.id
    left join lateral (
      select r.seq, r.due_at from rouse.redeliveries r
      where l.blocked_until is not null and r.partition_id = p.id and r.group_id = l.group_id
      order by r.seq limit 1
    ) h on true
    where p.queue_id = p_queue.id
  ), held as (
    -- Leases are found by lane, because they have no index by group.
    select s.* from lane l cross join lateral (
      select o.* from rouse.leases o where o.id = l.lease_id and o.partition_id = l.id offset 0) s
    where l.lease_id is not null
    union all
    select s.* from lane l cross join lateral (
      select o.* from rouse.leases o where o.partition_id = l.id and o.group_id = p_group.id and not o.ordered offset 0) s
    where not rouse.is_ordered(p_queue.ordering, l.name)
  ), lease as (
    select coalesce(sum(bit_count(s.unacked)), 0) as messages, min(s.expires_at) as first_at, max(s.expires_at) as last_at,
      (array_agg(s.holder order by s.expires_at))[1] as holder
    from held s
  )
  select jsonb_build_object(
    'consumerGroup', p_group.name, 'lastSeenAt', rouse.epoch_ms(p_group.last_seen_at),
    'idle', (select jsonb_build_object('since', rouse.epoch_ms(i.since), 'messages', i.messages, 'isPartial', i.is_partial,
               'oldestAt', rouse.epoch_ms(i.oldest_at), 'letGoAt', rouse.epoch_ms(i.let_go_at))
             from rouse.idle_groups i where i.group_id = p_group.id and p_group.last_seen_at <= i.since),
    'inFlight', (select s.messages from lease s), 'firstExpiresAt', (select rouse.epoch_ms(s.first_at) from lease s),
    'lastExpiresAt', (select rouse.epoch_ms(s.last_at) from lease s), 'holder', (select s.holder from lease s),
    'ready', (select coalesce(sum(l.fresh + l.again), 0) from lane l where l.lease_id is null and l.blocked_until is null),
    'prioritized', (select coalesce(sum(l.fresh + l.again), 0) from lane l
      where l.lease_id is null and l.blocked_until is null and rouse.is_level(l.name)),
    'topPriority', (select max(rouse.priority_of(l.name)) from lane l
      where l.lease_id is null and l.blocked_until is null and l.fresh + l.again > 0),
    'expired', (select coalesce(sum(l.expired), 0) from lane l),
    'leasedLanes', (select count(*) from lane l where l.lease_id is not null),
    'behindLeases', (select coalesce(sum(l.fresh + l.again), 0) from lane l where l.lease_id is not null),
    'rateOpensAt', case when p_queue.rate_limit > 0 and p_group.blocked_until > p_now then rouse.epoch_ms(p_group.blocked_until) end,
    'fullLanes', (select count(*) from lane l where l.blocked_by = 'full'),
    'behindFull', (select coalesce(sum(l.fresh + l.again), 0) from lane l where l.blocked_by = 'full'),
    'ratedLanes', (select count(*) from lane l where l.blocked_by = 'rate'),
    'ratedUntil', (select rouse.epoch_ms(min(l.blocked_until)) from lane l where l.blocked_by = 'rate'),
    'behindRate', (select coalesce(sum(l.fresh + l.again), 0) from lane l where l.blocked_by = 'rate'),
    'heldLanes', (select count(*) from lane l where l.blocked_by = 'held'),
    'held', (select coalesce(jsonb_agg(rouse.why_held(p_queue, p_group, h.id, h.name, h.held_seq, h.fresh) order by h.fresh desc, h.id), '[]')
             from (select * from lane l where l.blocked_by = 'held' order by l.fresh desc, l.id limit 5) h),
    'gatheringLanes', (select count(*) from lane l where l.blocked_by = 'gathering'),
    'gatheringUntil', (select rouse.epoch_ms(min(l.blocked_until)) from lane l where l.blocked_by = 'gathering'),
    'retries', (select count(*) from rouse.redeliveries r join lane l on l.id = r.partition_id where r.group_id = p_group.id and not r.announced),
    'nextRetryAt', (select rouse.epoch_ms(min(r.due_at)) from rouse.redeliveries r join lane l on l.id = r.partition_id
                    where r.group_id = p_group.id and not r.announced),
    'dead', (select count(*) from rouse.dead_letters d where d.queue_id = p_queue.id and d.group_id = p_group.id))
$$;

-- The failed message that holds a lane.
-- Parameters: queue and group, the partition's id and name, the message's seq, the number of messages behind
--   it.
-- Result: an object. Locks: none.
create or replace function rouse.why_held(
  p_queue rouse.queues, p_group rouse.groups, p_partition_id bigint, p_partition text, p_seq bigint, p_behind bigint
) returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'partition', rouse.shown_partition(p_partition), 'partitionId', p_partition_id::text, 'behind', p_behind,
    'transactionId', coalesce(m.transaction_id, p_partition_id || '-' || p_seq),
    'messageId', rouse.message_id(m.id, p_partition_id, p_seq),
    'attempts', r.attempt, 'errorCode', r.error_code, 'errorMessage', r.error_message, 'dueAt', rouse.epoch_ms(r.due_at))
  from rouse.redeliveries r
  left join rouse.messages m on m.partition_id = r.partition_id and m.seq = r.seq
  where r.partition_id = p_partition_id and r.group_id = p_group.id and r.seq = p_seq
$$;
