-- Creates a consumer group with a lane on every partition of its queue. The subscription determines where
-- each lane begins. Lanes start ready; the first pop that reads a drained lane settles it.
-- Parameters: queue id, group name, the time from which the group gets messages (null: all that are kept).
-- Result: the id of the group. A concurrent call may have created the group.
-- A notice reports the creation, for the log of the node that calls.
-- Locks: the queue row, before any partition is locked. No partition can be created meanwhile.
create or replace function rouse.subscribe(p_queue_id integer, p_group text, p_from timestamptz) returns integer
language plpgsql
set lock_timeout = 0  -- no limit: another call may be creating the group, with many lanes
as $$
declare
  v_id integer;
  v_queue text;
begin
  perform rouse.require_read_committed();
  perform rouse.check_name('consumerGroup', p_group);
  select q.name into v_queue from rouse.queues q where q.id = p_queue_id for update;
  if not found then
    perform rouse.raise('RS001', 'retry', 'the queue was deleted while a group was created');
  end if;
  -- barrier: subscribe-locked
  insert into rouse.groups (queue_id, name, subscribed_from, created_at, last_seen_at)
  values (p_queue_id, p_group, p_from, rouse.now(), rouse.now())
  on conflict (queue_id, name) do nothing
  returning id into v_id;
  if v_id is null then
    select id into v_id from rouse.groups where queue_id = p_queue_id and name = p_group;
    return v_id;
  end if;
  insert into rouse.lanes (partition_id, group_id, next, ready)
  select p.id, v_id, case when p_from is null then p.tail when p.last_created_at < p_from then p.head
    else rouse.seq_at(p.id, p.tail, p.head, p_from) end, true
  from rouse.partitions p
  where p.queue_id = p_queue_id
  order by p.id;
  raise notice 'rouse: %', jsonb_build_object('event', 'group_created', 'queue', v_queue, 'consumerGroup', p_group);
  -- barrier: subscribe-written
  return v_id;
end $$;
