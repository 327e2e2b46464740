-- Moves a group to another position in one partition: to a time, or to the end. Its leases and redeliveries in
-- this partition are deleted; acks of them are rejected.
-- Parameters: queue, group, partition, the time (null: the end).
-- Result: one wake hint with the partition; or RS404, or RS409 consumer_transaction_open, also if the open
--   transaction is in another partition.
-- Locks: as seek, but only this partition. It takes the leases of the whole group, as take_leases does, so it
--   locks all its lanes before.
create or replace function rouse.seek_partition(p_queue text, p_group text, p_partition text, p_time timestamptz)
returns setof rouse.wake_hint
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_queue rouse.queues;
  v_group_id integer;
  v_partition rouse.partitions;
  v_seq bigint;
begin
  perform rouse.raise_durability();
  select * into v_queue from rouse.queues q where q.name = p_queue for no key update;
  select g.id into v_group_id from rouse.groups g where g.queue_id = v_queue.id and g.name = p_group;
  if v_group_id is null then
    perform rouse.raise('RS404', 'not_found', format('queue "%s" has no consumer group "%s"', p_queue, p_group));
  end if;
  perform rouse.check_consumers(p_queue, array[v_group_id]);
  perform rouse.see_groups(array[v_group_id]);
  select * into v_partition from rouse.partitions p where p.queue_id = v_queue.id and p.name = p_partition for no key update;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('queue "%s" has no partition "%s"', p_queue, p_partition));
  end if;
  perform from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
  where p.queue_id = v_queue.id and l.group_id = v_group_id
  order by l.partition_id, l.group_id for no key update of l;
  -- barrier: seek-partition-locked
  perform rouse.take_leases(p_queue, array[v_group_id]);
  delete from rouse.leases s
  using (select o.id from rouse.leases o
         where o.group_id = v_group_id and o.partition_id = v_partition.id for update skip locked) o
  where s.id = o.id and s.partition_id = v_partition.id;
  delete from rouse.redeliveries r where r.partition_id = v_partition.id and r.group_id = v_group_id;
  v_seq := case when p_time is null or v_partition.last_created_at < p_time then v_partition.head
    else rouse.seq_at(v_partition.id, v_partition.tail, v_partition.head, p_time) end;
  update rouse.lanes l set next = v_seq, ready = v_seq < v_partition.head, lease_id = null, blocked_until = null
  where l.partition_id = v_partition.id and l.group_id = v_group_id;
  return query
  select v_queue.name, p_partition, p_group, v_queue.namespace, v_queue.task, v_partition.head - v_seq;
end $$;
