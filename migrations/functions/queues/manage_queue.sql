-- Operations on whole queues, for operators. None waits for a lock longer than its lock_timeout, and none
-- runs for long: removal_step does the work that would take long.

-- Stops or resumes delivery. Pushes continue, and leases stay valid.
-- Parameters: queue, whether to pause. Result: a wake hint, which matters only if the queue is resumed; or
--   RS404.
-- Locks: the queue row.
create or replace function rouse.pause(p_queue text, p_paused boolean)
returns setof rouse.wake_hint
language plpgsql
set lock_timeout = '700ms'
as $$
begin
  perform rouse.raise_durability();
  return query
  update rouse.queues q set paused = p_paused, version = q.version + 1 where q.name = p_queue
  returning q.name, null::text, null::text, q.namespace, q.task, null::bigint;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
end $$;

-- Removes all messages of a queue, in the log, scheduled and cancelled, with their leases, redeliveries and dedupe
-- keys. Dead letters stay. The call raises the `tail` of each partition; removal_step later deletes the rows
-- below it. If the queue is too large for one transaction, removal_step does the whole purge: messages pushed
-- before the call are gone after the last step, and messages pushed later stay.
-- Parameters: queue.
-- Result: the number of messages removed, without those that were cancelled while they were scheduled, or null if
--   removal_step will remove them; or RS404, or RS409 consumer_transaction_open.
-- Locks: the advisory lock of its unique keys, the queue row (so that no partition is created meanwhile),
--   partitions by id, lanes by (partition, group), leases by id; then as begin_removal.
create or replace function rouse.purge(p_queue text) returns bigint
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_settled_max constant integer := 1000;
  v_queue_id integer;
  v_group_ids integer[];
  v_ids bigint[];
  v_count bigint;
  v_scheduled bigint;
begin
  perform rouse.raise_durability();
  perform pg_advisory_xact_lock(rouse.keys_lock(p_queue));
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue for no key update;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  v_group_ids := array(select g.id from rouse.groups g where g.queue_id = v_queue_id);
  perform rouse.check_consumers(p_queue, v_group_ids);
  -- barrier: purge-checked
  update rouse.queues q set purges = q.purges + 1 where q.id = v_queue_id;  -- frees the unique keys
  if rouse.purges_in_steps(v_queue_id, p_queue) then
    perform rouse.lock_leased_lanes(v_group_ids);
    perform rouse.take_leases(p_queue, v_group_ids);
    perform rouse.begin_removal('purge', p_queue, v_queue_id, '{}', 'scheduled');
    return null;
  end if;
  v_ids := array(select p.id from rouse.partitions p where p.queue_id = v_queue_id order by p.id for no key update);
  perform from rouse.lanes l where l.partition_id = any (v_ids) order by l.partition_id, l.group_id for no key update;
  -- barrier: purge-locked
  perform rouse.take_leases(p_queue, v_group_ids);
  select coalesce(sum(p.head - p.tail), 0) into v_count from rouse.partitions p where p.id = any (v_ids);
  update rouse.partitions p set tail = p.head, keys_from = p.head where p.id = any (v_ids) and p.keys_from < p.head;
  perform rouse.drop_leases(v_group_ids);
  delete from rouse.redeliveries r where r.partition_id = any (v_ids);
  -- Pops never start below `tail`, so the cursors stay as they are. A ready lane without messages does no
  -- harm, so with many partitions only leased and blocked lanes are written.
  update rouse.lanes l set lease_id = null, blocked_until = null, ready = l.ready and cardinality(v_ids) > v_settled_max
  where l.partition_id = any (v_ids)
    and (l.lease_id is not null or l.blocked_until is not null or (l.ready and cardinality(v_ids) <= v_settled_max));
  -- Promotion needs the partition locks that this call holds, so a scheduled message is either in the log
  -- already or still in rouse.scheduled.
  v_scheduled := rouse.delete_scheduled(v_queue_id, array(select s.id from rouse.scheduled s where s.queue = p_queue));
  perform rouse.delete_cancelled(v_queue_id, array(select c.id from rouse.cancelled c where c.queue = p_queue));
  perform rouse.begin_removal('purge', p_queue, v_queue_id, '{}', 'partitions');
  return v_count + v_scheduled;
end $$;

-- Whether a purge is too large for one transaction.
-- Parameters: the queue's id and name. Result: a boolean. Locks: none.
create or replace function rouse.purges_in_steps(p_queue_id integer, p_queue text) returns boolean
language plpgsql stable
as $$
declare
  v_partitions_max constant integer := 20000;
  v_rows_max constant integer := 20000;
begin
  return (select count(*) > v_partitions_max from (select from rouse.partitions p where p.queue_id = p_queue_id limit v_partitions_max + 1) p)
    or (select count(*) > v_rows_max from (select from rouse.scheduled s where s.queue = p_queue limit v_rows_max + 1) s)
    or (select count(*) > v_rows_max from (select from rouse.cancelled c where c.queue = p_queue limit v_rows_max + 1) c)
    or (select count(*) > v_rows_max from (
      select from rouse.partitions p join rouse.redeliveries r on r.partition_id = p.id
      where p.queue_id = p_queue_id limit v_rows_max + 1) r)
    or (select count(*) > v_rows_max from rouse.groups g join rouse.leases s on s.group_id = g.id where g.queue_id = p_queue_id);
end $$;

-- Deletes scheduled messages and their dedupe keys. A message that a call is cancelling is left to that call: a
-- user's transaction may stay open for long, and the message stays only if it rolls back.
-- Parameters: the queue's id, ids of its scheduled messages. Result: the number deleted.
-- Locks: those rows, with SKIP LOCKED.
create or replace function rouse.delete_scheduled(p_queue_id integer, p_ids bigint[]) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_count bigint;
begin
  with gone as (
    delete from rouse.scheduled s
    where s.id = any (array(select x.id from rouse.scheduled x where x.id = any (p_ids) order by x.id for update skip locked))
    returning s.partition, s.transaction_id, s.message_id, s.origin
  ), forgotten as (
    -- Keys of SQL producers are stored only when their message is promoted.
    delete from rouse.dedup d using gone s join rouse.partitions p on p.queue_id = p_queue_id and p.name = s.partition
    where s.origin = 'broker' and d.partition_id = p.id and d.key = s.transaction_id and d.message_id = s.message_id
  )
  select count(*) into v_count from gone;
  return v_count;
end $$;

-- Deletes messages that were cancelled while they were scheduled, and their dedupe keys.
-- Parameters: the queue's id, ids of such messages. Result: the number deleted.
-- Locks: those rows, with SKIP LOCKED: retention is deleting the others.
create or replace function rouse.delete_cancelled(p_queue_id integer, p_ids uuid[]) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_count bigint;
begin
  with gone as (
    delete from rouse.cancelled c
    where c.id = any (array(select x.id from rouse.cancelled x where x.id = any (p_ids) order by x.id for update skip locked))
    returning c.id, c.partition, c.transaction_id
  ), forgotten as (
    delete from rouse.dedup d using gone c join rouse.partitions p on p.queue_id = p_queue_id and p.name = c.partition
    where d.partition_id = p.id and d.key = c.transaction_id and d.message_id = c.id
  )
  select count(*) into v_count from gone;
  return v_count;
end $$;

-- Deletes a queue with its contents and dead letters. The name can be used again at once: the next push
-- creates a queue with a new id. The contents of the deleted queue can no longer be reached, and removal_step
-- deletes them.
-- Parameters: queue. Result: whether it existed; or RS409 consumer_transaction_open.
-- Locks: the queue row, scheduled and cancelled messages, lanes with a lease, by (partition, group), leases by id; then as
--   begin_removal. A push that has found its partition before this call commits counts as earlier: its
--   message is deleted with the queue.
create or replace function rouse.delete_queue(p_queue text) returns boolean
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_scheduled_max constant integer := 20000;
  v_queue_id integer;
  v_group_ids integer[];
  v_scheduled bigint[];
  v_cancelled uuid[];
begin
  perform rouse.raise_durability();
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue for update;
  if not found then
    return false;
  end if;
  -- Scheduled messages are locked before lanes, because promotion locks them in this order.
  v_scheduled := array(select s.id from rouse.scheduled s where s.queue = p_queue limit v_scheduled_max + 1);
  if cardinality(v_scheduled) <= v_scheduled_max then
    perform rouse.delete_scheduled(v_queue_id, v_scheduled);
  end if;
  v_cancelled := array(select c.id from rouse.cancelled c where c.queue = p_queue limit v_scheduled_max + 1);
  if cardinality(v_cancelled) <= v_scheduled_max then
    perform rouse.delete_cancelled(v_queue_id, v_cancelled);
  end if;
  v_group_ids := array(select g.id from rouse.groups g where g.queue_id = v_queue_id);
  perform rouse.lock_leased_lanes(v_group_ids);
  -- barrier: delete-locked
  perform rouse.take_leases(p_queue, v_group_ids);
  perform rouse.drop_leases(v_group_ids);
  delete from rouse.removals r where r.queue_id = v_queue_id and r.kind = 'purge';
  perform rouse.begin_removal('queue', p_queue, v_queue_id, v_group_ids,
    case when greatest(cardinality(v_scheduled), cardinality(v_cancelled)) > v_scheduled_max then 'scheduled' else 'partitions' end);
  delete from rouse.groups g where g.queue_id = v_queue_id;
  delete from rouse.queues q where q.id = v_queue_id;
  return true;
end $$;

-- Deletes a consumer group of a queue, with its leases, redeliveries and dead letters. The name can be used
-- again at once. The lanes of the deleted group can no longer be reached, and removal_step deletes them.
-- Parameters: queue, group. Result: whether it existed; or RS409 consumer_transaction_open.
-- Locks: the queue row, the group, lanes with a lease, by (partition, group), leases by id; then as
--   begin_removal.
create or replace function rouse.delete_group(p_queue text, p_group text) returns boolean
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_queue_id integer;
  v_group_id integer;
begin
  perform rouse.raise_durability();
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue for update;
  select g.id into v_group_id from rouse.groups g where g.queue_id = v_queue_id and g.name = p_group for update;
  if v_group_id is null then
    return false;
  end if;
  perform rouse.lock_leased_lanes(array[v_group_id]);
  -- barrier: delete-group-locked
  perform rouse.take_leases(p_queue, array[v_group_id]);
  perform rouse.drop_leases(array[v_group_id]);
  perform rouse.begin_removal('group', p_queue, v_queue_id, array[v_group_id], 'partitions');
  delete from rouse.groups g where g.id = v_group_id;
  return true;
end $$;
