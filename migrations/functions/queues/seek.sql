-- Moves a group to another position in its queue: to a time, or to the end. Its leases and redeliveries are
-- deleted; acks of its old leases are rejected.
-- Parameters: queue, group, the time (null: the end).
-- Result: one wake hint without a partition; or RS404, or RS409 consumer_transaction_open.
-- Locks: the queue row, the group with SKIP LOCKED, partitions by id, lanes by (partition, group), leases by
--   id. While the queue row is locked, no partition can be created: pushes to a new partition would not wait
--   for this call. The call waits at most lock_timeout for each lock, and never for a lease.
create or replace function rouse.seek(p_queue text, p_group text, p_time timestamptz)
returns setof rouse.wake_hint
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_queue rouse.queues;
  v_group_id integer;
begin
  perform rouse.raise_durability();
  select * into v_queue from rouse.queues q where q.name = p_queue for no key update;
  select g.id into v_group_id from rouse.groups g where g.queue_id = v_queue.id and g.name = p_group;
  if v_group_id is null then
    perform rouse.raise('RS404', 'not_found', format('queue "%s" has no consumer group "%s"', p_queue, p_group));
  end if;
  perform rouse.check_consumers(p_queue, array[v_group_id]);
  -- barrier: seek-checked
  perform rouse.see_groups(array[v_group_id]);
  perform from rouse.partitions p where p.queue_id = v_queue.id order by p.id for no key update;
  perform from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
  where p.queue_id = v_queue.id and l.group_id = v_group_id
  order by l.partition_id, l.group_id for no key update of l;
  -- barrier: seek-locked
  perform rouse.take_leases(p_queue, array[v_group_id]);
  perform rouse.drop_leases(array[v_group_id]);
  delete from rouse.redeliveries r where r.group_id = v_group_id;
  return query
  with moved as (
    update rouse.lanes l
    set next = p.seq, ready = p.seq < p.head, lease_id = null, blocked_until = null
    from (
      select p.id, p.head, case when p_time is null or p.last_created_at < p_time then p.head
        else rouse.seq_at(p.id, p.tail, p.head, p_time) end as seq
      from rouse.partitions p where p.queue_id = v_queue.id offset 0
    ) p
    where l.partition_id = p.id and l.group_id = v_group_id
    returning p.head - l.next as pending
  )
  select v_queue.name, null::text, p_group, v_queue.namespace, v_queue.task, coalesce(sum(m.pending), 0)::bigint from moved m;
end $$;
