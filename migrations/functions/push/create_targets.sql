-- Creates the missing queues and partitions of a call, with a lane for every group. New lanes start ready,
-- because a concurrent push that does not see them yet cannot set them ready. A ready lane without messages
-- does no harm.
-- Parameters: parallel arrays of queue and partition names; the target of each message, if there are
--   messages.
-- Result: nothing; the caller resolves the targets again in a new statement. The error for a bad name gives
--   the number of the first message that uses it.
-- Locks: as lock_queues; before any partition lock.
create or replace function rouse.create_targets(p_queues text[], p_partitions text[], p_targets integer[] default null) returns void
language plpgsql
as $$
declare
  v record;
  v_created bigint[];
begin
  perform rouse.create_queues(p_queues, p_targets);
  for v in
    select t.partition, t.n from unnest(p_partitions) with ordinality t(partition, n)
    where (t.partition = rouse.independent_partition() or rouse.is_level(t.partition)) is not true
  loop
    perform rouse.check_name('partition', v.partition, coalesce(array_position(p_targets, v.n::integer), v.n::integer));
  end loop;

  perform rouse.lock_queues(p_queues, p_partitions);
  -- barrier: create-queues-locked
  if p_targets is not null then
    perform rouse.check_levels(p_queues, p_partitions, p_targets);
  end if;
  v_created := rouse.create_levels(p_queues, p_partitions);
  with born as (
    insert into rouse.partitions (queue_id, name, last_created_at)
    select distinct q.id, t.partition, rouse.now()
    from unnest(p_queues, p_partitions) t(queue, partition) join rouse.queues q on q.name = t.queue
    order by 1, 2
    on conflict (queue_id, name) do nothing
    returning id
  )
  select v_created || array_agg(id) into v_created from born;
  insert into rouse.lanes (partition_id, group_id, next, ready)
  select p.id, g.id, 1, true
  from rouse.partitions p join rouse.groups g on g.queue_id = p.queue_id
  where p.id = any (v_created)
  order by p.id, g.id;
end $$;

-- Creates the missing queues of a call, with the default options of this moment.
-- Parameters: queue names; the target of each message, if there are messages. Result: nothing; an error as in
--   create_targets.
-- Locks: the rows of the queues that it creates.
create or replace function rouse.create_queues(p_queues text[], p_targets integer[] default null) returns void
language plpgsql
as $$
declare
  v record;
begin
  for v in
    select distinct on (t.queue) t.queue, t.n
    from unnest(p_queues) with ordinality t(queue, n)
    where not exists (select from rouse.queues q where q.name = t.queue)
    order by t.queue
  loop
    perform rouse.check_name('queue', v.queue, coalesce(array_position(p_targets, v.n::integer), v.n::integer));
    perform rouse.write_queue(v.queue, null, null, '{}', false);
  end loop;
end $$;

-- Keeps queues unchanged until the transaction ends: no group is created, no option changes. A queue with a
-- size limit is locked as push_general locks it. Each queue is locked once: two calls that first take shared
-- locks and then upgrade them would deadlock.
-- Parameters: queue names; the partitions that the call may create in them, or null. Result: nothing; queues
--   that do not exist are ignored.
-- Locks: queues FOR SHARE by id; those with a size limit, and those that get their first message with a
--   priority, FOR NO KEY UPDATE.
create or replace function rouse.lock_queues(p_queues text[], p_partitions text[] default null) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_prioritized constant text[] := array(
    select t.queue from unnest(p_queues, p_partitions) t(queue, partition) where rouse.is_level(t.partition));
  v record;
  v_size_max bigint;
begin
  for v in
    select q.id, q.name = any (v_prioritized) as is_prioritized from rouse.queues q where q.name = any (p_queues) order by q.id
  loop
    perform from rouse.queues q where q.id = v.id and (q.size_max > 0 or (v.is_prioritized and not q.prioritized)) for no key update;
    if not found then
      -- No filter on the limit: it would be evaluated before the lock, and a queue that just got a limit
      -- would not be locked.
      select q.size_max into v_size_max from rouse.queues q where q.id = v.id for share;
      if v_size_max > 0 then
        perform rouse.raise('RS001', 'retry', 'the queue got a size limit while a call waited for it');
      end if;
    end if;
  end loop;
end $$;
