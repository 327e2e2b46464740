-- Priorities of messages. A message with a priority from 1 to 9 is independent, and is stored in a reserved
-- partition of its queue, whose name is U+001F and the priority. The nine partitions of a queue are created
-- together, the highest priority first, and are never removed while the queue exists: pops take them in the
-- order of their ids. Messages of priority 0 are stored as if there were no priorities.

-- Whether a partition holds messages with a priority.
-- Parameters: its name. Result: a boolean, null for null. Locks: none.
create or replace function rouse.is_level(p_partition text) returns boolean
language sql immutable
as $$
  select starts_with(p_partition, chr(31)) and substr(p_partition, 2) in ('1', '2', '3', '4', '5', '6', '7', '8', '9')
$$;

-- The priority of the messages of a partition.
-- Parameters: its name. Result: 0 to 9. Locks: none.
create or replace function rouse.priority_of(p_partition text) returns integer
language sql immutable
as $$
  select case when rouse.is_level(p_partition) then substr(p_partition, 2)::integer else 0 end
$$;

-- Refuses messages with a priority for queues whose partitions are all ordered. The error names the first one.
-- Parameters: parallel arrays of queue and partition names; the target of each message.
-- Result: nothing. Locks: none.
create or replace function rouse.check_levels(p_queues text[], p_partitions text[], p_targets integer[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v record;
begin
  select t.queue, t.n into v
  from unnest(p_queues, p_partitions) with ordinality t(queue, partition, n)
  where rouse.is_level(t.partition) and exists (select from rouse.queues q where q.name = t.queue and q.ordering = 'partition')
  order by t.n limit 1;
  if found then
    perform rouse.refuse_priority(v.queue, array_position(p_targets, v.n::integer));
  end if;
end $$;

-- Raises the error for a priority in a queue that keeps the order of all messages.
-- Parameters: the queue, the 1-based position of the message in its call. Result: never returns. Locks: none.
create or replace function rouse.refuse_priority(p_queue text, p_item integer default null) returns void
language plpgsql
as $$
begin
  perform rouse.raise('RS400', 'invalid_request',
    format('queue "%s" has ordering "partition", which keeps the order of all messages: a message cannot have a priority', p_queue),
    jsonb_strip_nulls(jsonb_build_object('field', 'priority', 'item', p_item)));
end $$;

-- Creates the partitions for messages with a priority, in the queues that need them now.
-- Parameters: parallel arrays of queue and partition names. Result: the ids of the new partitions.
-- Locks: none beyond the queues, which the caller holds FOR NO KEY UPDATE unless they are prioritized.
create or replace function rouse.create_levels(p_queues text[], p_partitions text[]) returns bigint[]
language plpgsql
as $$
declare
  v_queue_id integer;
  v_level integer;
  v_id bigint;
  v_created bigint[] := '{}';
begin
  for v_queue_id in
    select q.id from rouse.queues q
    where not q.prioritized and q.name in (
      select t.queue from unnest(p_queues, p_partitions) t(queue, partition) where rouse.is_level(t.partition))
    order by q.id
  loop
    -- Pops that have read the queue before check its version, and start again.
    update rouse.queues q set prioritized = true, version = q.version + 1 where q.id = v_queue_id;
    foreach v_level in array array[9, 8, 7, 6, 5, 4, 3, 2, 1] loop
      insert into rouse.partitions (queue_id, name, last_created_at)
      values (v_queue_id, chr(31) || v_level, rouse.now()) returning id into v_id;
      v_created := v_created || v_id;
    end loop;
  end loop;
  return v_created;
end $$;
