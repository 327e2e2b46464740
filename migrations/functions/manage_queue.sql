-- Whole-queue operations for operators.

-- Stops or resumes delivery. Pushes go on; leases out stay valid.
-- Parameters: queue, paused or not. Result: the `woken` (one row) when resumed, or RS404.
-- Locks: the queue row.
create or replace function rouse.pause(p_queue text, p_paused boolean)
returns table (queue text, partition text, consumer_group text, namespace text, task text, count bigint)
language plpgsql
as $$
begin
  perform rouse.raise_durability();
  return query
  update rouse.queues q set paused = p_paused, version = q.version + 1 where q.name = p_queue
  returning q.name, null::text, null::text, q.namespace, q.task, 0::bigint;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
end $$;

-- Drops every message of a queue that is in the log or scheduled, with what groups hold of them. Dead letters stay.
-- Parameters: queue. Result: how many messages went, or RS404.
-- Locks: the queue row (no partition is born meanwhile), partitions by id, lanes by (partition, group).
create or replace function rouse.purge(p_queue text) returns bigint
language plpgsql
as $$
declare
  v_queue_id integer;
  v_ids bigint[];
  v_count bigint;
  v_scheduled bigint;
begin
  perform rouse.raise_durability();
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue for no key update;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  v_ids := array(select p.id from rouse.partitions p where p.queue_id = v_queue_id order by p.id for no key update);
  perform from rouse.lanes l where l.partition_id = any (v_ids) order by l.partition_id, l.group_id for no key update;
  select coalesce(sum(p.head - p.tail), 0) into v_count from rouse.partitions p where p.id = any (v_ids);
  update rouse.partitions p set tail = p.head where p.id = any (v_ids);
  delete from rouse.leases s where s.partition_id = any (v_ids);
  delete from rouse.redeliveries r where r.partition_id = any (v_ids);
  update rouse.lanes l set next = p.head, ready = false, lease_id = null, blocked_until = null
  from rouse.partitions p where p.id = l.partition_id and p.id = any (v_ids);
  delete from rouse.messages m using rouse.partitions p
  where p.id = any (v_ids) and m.partition_id = p.id and m.seq < p.tail;
  -- Promoters want the partitions that we hold: what is scheduled is either in the log by now or still here, never both.
  delete from rouse.scheduled s where s.queue = p_queue;
  get diagnostics v_scheduled = row_count;
  return v_count + v_scheduled;
end $$;

-- Deletes a queue and all that is in it, dead letters included.
-- Parameters: queue. Result: whether it existed.
-- Locks: the queue row, then its partitions by id. A push that waits for a partition starts anew and makes a new queue.
create or replace function rouse.delete_queue(p_queue text) returns boolean
language plpgsql
as $$
declare
  v_queue_id integer;
  v_ids bigint[];
begin
  perform rouse.raise_durability();
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue for update;
  if not found then
    return false;
  end if;
  v_ids := array(select p.id from rouse.partitions p where p.queue_id = v_queue_id order by p.id for update);
  perform from rouse.lanes l where l.partition_id = any (v_ids) order by l.partition_id, l.group_id for update;
  -- barrier: delete-locked
  delete from rouse.leases where partition_id = any (v_ids);
  delete from rouse.redeliveries where partition_id = any (v_ids);
  delete from rouse.attempts where partition_id = any (v_ids);
  delete from rouse.dedup where partition_id = any (v_ids);
  delete from rouse.freed where partition_id = any (v_ids);
  delete from rouse.messages where partition_id = any (v_ids);
  delete from rouse.traces where partition_id = any (v_ids);
  delete from rouse.dead_letters where queue_id = v_queue_id;
  delete from rouse.scheduled where queue = p_queue;
  delete from rouse.lanes where partition_id = any (v_ids);
  delete from rouse.groups where queue_id = v_queue_id;
  delete from rouse.partitions where id = any (v_ids);
  delete from rouse.queues where id = v_queue_id;
  return true;
end $$;

-- Deletes a consumer group of a queue, with its leases, redeliveries and dead letters.
-- Parameters: queue, group. Result: whether it existed.
-- Locks: the queue row, then the group's lanes.
create or replace function rouse.delete_group(p_queue text, p_group text) returns boolean
language plpgsql
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
  perform from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
  where p.queue_id = v_queue_id and l.group_id = v_group_id order by l.partition_id, l.group_id for update of l;
  delete from rouse.leases where group_id = v_group_id;
  delete from rouse.redeliveries where group_id = v_group_id;
  delete from rouse.attempts where group_id = v_group_id;
  delete from rouse.dead_letters where queue_id = v_queue_id and group_id = v_group_id;
  delete from rouse.lanes l using rouse.partitions p where p.id = l.partition_id and p.queue_id = v_queue_id and l.group_id = v_group_id;
  delete from rouse.groups where id = v_group_id;
  return true;
end $$;
