-- Creates a queue, or merges options into those of an existing queue.
-- Parameters: queue, namespace and task (null: unchanged), the options to change (a null value resets an
--   option to the current default).
-- Result: one row: the queue's id, its version, all its options, namespace and task. The caller builds a wake
--   hint from this row, because the change may make messages deliverable. Raises RS409 with
--   consumer_transaction_open or queue_in_use.
-- Locks: the queue row, and that of its new deadLetterTo, by id. If the ordering or an option that blocks
--   lanes changes: the queue's lanes by (partition, group), so that no pop in progress leases or blocks a lane
--   according to the old options. If its rate changes: before the lanes, its groups by id. If an in-flight
--   limit is added or removed: the queue's leases and their lanes.
create or replace function rouse.configure(p_queue text, p_namespace text, p_task text, p_options jsonb)
returns table (queue_id integer, version bigint, options jsonb, namespace text, task text)
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_queue rouse.queues;
  v_group_ids integer[];
  v_merged jsonb;
  v_old jsonb;
  v_new jsonb;
begin
  perform rouse.check_name('queue', p_queue);
  if p_namespace is not null then
    perform rouse.check_name('namespace', p_namespace);
  end if;
  if p_task is not null then
    perform rouse.check_name('task', p_task);
  end if;
  perform rouse.check_options(p_options);
  perform rouse.raise_durability();
  perform rouse.lock_to_configure(p_queue, p_options ->> 'deadLetterTo', true);
  select * into v_queue from rouse.queues where name = p_queue;
  if not found then
    perform rouse.raise('RS001', 'retry', 'the queue was deleted while it was configured');
  end if;
  -- barrier: configure-locked
  v_merged := rouse.merge_options(v_queue.options, p_options);
  v_old := rouse.options_in_force(v_queue);
  v_new := rouse.options_after(v_queue, p_options);
  perform rouse.check_target(p_queue, p_options, v_new);
  if v_new -> 'rate' is distinct from v_old -> 'rate' then
    perform rouse.reset_rates(v_queue.id, coalesce((v_new #>> '{rate,limit}')::integer, 0), (v_new #>> '{rate,perMs}')::bigint);
  end if;
  if v_new ->> 'ordering' <> v_queue.ordering or v_new ->> 'onFailure' <> v_queue.on_failure
     or v_new -> 'rate' is distinct from v_old -> 'rate' or v_new -> 'partitionRate' is distinct from v_old -> 'partitionRate'
     or v_new -> 'maxInFlightPerPartition' <> v_old -> 'maxInFlightPerPartition'
     or (v_new ->> 'windowBuffer')::bigint * 1000 <> v_queue.window_ms
     or (v_new ->> 'ttl')::bigint * 1000 <> v_queue.ttl_ms or (v_new ->> 'maxWaitTimeSeconds')::bigint * 1000 <> v_queue.wait_ms_max then
    perform from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
    where p.queue_id = v_queue.id
    order by l.partition_id, l.group_id for no key update of l;
    -- The reason for a block may be gone: the next pop checks the lane again and blocks it if needed.
    -- A bucket of an old rate becomes an empty one of the new rate at most, as in reset_rates.
    update rouse.lanes l set blocked_until = null,
      rate_tat = case when v_new ->> 'partitionRate' is not null
        then least(l.rate_tat, rouse.now() + (v_new #>> '{partitionRate,perMs}')::bigint * interval '1 millisecond') end
    from rouse.partitions p
    where p.queue_id = v_queue.id and l.partition_id = p.id and (l.blocked_until is not null or l.rate_tat is not null);
  end if;
  -- An ordered lease keeps its lane closed until it ends, under any ordering. An unordered lease does not, so
  -- its partition cannot become ordered.
  if v_new ->> 'ordering' <> v_queue.ordering and exists (
    select from rouse.groups g join rouse.lanes l on l.group_id = g.id join rouse.partitions p on p.id = l.partition_id
    cross join lateral (
      select from rouse.leases s where s.partition_id = l.partition_id and not s.ordered and s.group_id = g.id limit 1) s
    where g.queue_id = v_queue.id and p.queue_id = v_queue.id and rouse.is_ordered(v_new ->> 'ordering', p.name)
  ) then
    perform rouse.raise('RS409', 'queue_in_use',
      'ordering cannot become stricter for a partition while its messages are leased without order', '{"field": "ordering"}');
  end if;
  perform rouse.write_queue(p_queue, p_namespace, p_task, v_merged, true, v_new);
  if ((v_new ->> 'maxInFlight')::integer > 0) <> (v_queue.in_flight_max > 0)
     or ((v_new ->> 'maxInFlightPerPartition')::integer > 0) <> (v_queue.partition_in_flight_max > 0) then
    -- The update below locks leases, and an ack that finds its lease locked is rejected. With the locks taken
    -- here, acks wait before they look at their lease.
    v_group_ids := array(select g.id from rouse.groups g where g.queue_id = v_queue.id);
    perform rouse.lock_leased_lanes(v_group_ids);
    -- barrier: configure-lanes-locked
    perform rouse.take_leases(p_queue, v_group_ids);
  end if;
  update rouse.leases s set limited = q.in_flight_max > 0, lane_limited = q.partition_in_flight_max > 0 and o.is_limited
  from rouse.groups g join rouse.queues q on q.id = g.queue_id
  cross join lateral (
    select s.id, s.partition_id, not s.ordered and rouse.shown_partition(p.name) is not null as is_limited
    from rouse.leases s join rouse.partitions p on p.id = s.partition_id where s.group_id = g.id) o
  where g.queue_id = v_queue.id and s.id = o.id and s.partition_id = o.partition_id
    and (s.limited <> (q.in_flight_max > 0) or s.lane_limited <> (q.partition_in_flight_max > 0 and o.is_limited));
  return query
  select q.id, q.version, rouse.options_in_force(q), q.namespace, q.task from rouse.queues q where q.id = v_queue.id;
end $$;

-- Locks the queues that a call of configure reads and writes, and creates the missing ones. They are created
-- before any is locked, in order of their names: a call that waits for another to create a queue must not
-- hold one.
-- Parameters: the queue, its new deadLetterTo (null: none), whether to create the queue itself.
-- Result: nothing.
-- Locks: those queues by id. The strongest lock right away: raising a weaker one later would deadlock with
--   calls that hold a shared lock.
create or replace function rouse.lock_to_configure(p_queue text, p_target text, p_creates boolean) returns void
language plpgsql
as $$
declare
  v_name text;
begin
  for v_name in
    select distinct n.name from unnest(array[p_queue, p_target]) n(name)
    where (p_creates or n.name <> p_queue) and not exists (select from rouse.queues q where q.name = n.name) order by n.name
  loop
    continue when v_name is null;
    perform rouse.write_queue(v_name, null, null, '{}', false);
  end loop;
  -- barrier: configure-created
  perform from rouse.queues q where q.name in (p_queue, p_target) order by q.id for update;
end $$;

-- Refuses a deadLetterTo that closes a circle, and one of an encrypted queue, whose payloads open only under
-- their own queue. A circle that two concurrent calls close through a third queue is not seen here: give_up
-- ends it.
-- Parameters: the queue, the options to change, all options after the change. Result: nothing. Locks: none.
create or replace function rouse.check_target(p_queue text, p_changes jsonb, p_options jsonb) returns void
language plpgsql
as $$
begin
  if p_options ->> 'deadLetterTo' is null then
    return;
  end if;
  if (p_options ->> 'encryptionEnabled')::boolean then
    perform rouse.raise('RS400', 'invalid_option', format('queue "%s" is encrypted: its dead letters cannot go to another queue', p_queue),
      jsonb_build_object('field', case when p_changes ->> 'deadLetterTo' is null then 'encryptionEnabled' else 'deadLetterTo' end));
  end if;
  if p_changes ->> 'deadLetterTo' is not null and p_queue in (
    with recursive chain(name) as (
      select p_changes ->> 'deadLetterTo'
      union
      select q.dead_letter_to from chain c join rouse.queues q on q.name = c.name where c.name <> p_queue and q.dead_letter_to is not null
    )
    select c.name from chain c
  ) then
    perform rouse.raise('RS400', 'invalid_option',
      format('dead letters of queue "%s" would come back to it from queue "%s"', p_queue, p_changes ->> 'deadLetterTo'),
      '{"field": "deadLetterTo"}');
  end if;
end $$;
