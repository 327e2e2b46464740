-- Lists dead letters, newest first.
-- Parameters: queue and group (null: any), the most rows, how many to pass over.
-- Result: the letters; every row carries the total that matches.
-- Locks: none.
create or replace function rouse.dead_letters(p_queue text, p_group text, p_limit integer default 100, p_offset integer default 0)
returns table (
  id bigint, message_id uuid, transaction_id text, trace_id text, partition_id bigint, partition text, queue text,
  consumer_group text, seq bigint, payload text, headers text, error_message text, error_code text, attempts integer,
  created_at timestamptz, failed_at timestamptz, total bigint
)
language sql stable
as $$
  select d.id, d.message_id, d.transaction_id, d.trace_id, d.partition_id, p.name, q.name, g.name, d.seq, d.payload, d.headers,
    d.error_message, d.error_code, d.attempts, d.created_at, d.failed_at, count(*) over ()
  from rouse.dead_letters d
  join rouse.queues q on q.id = d.queue_id
  join rouse.groups g on g.id = d.group_id
  left join rouse.partitions p on p.id = d.partition_id
  where (p_queue is null or q.name = p_queue) and (p_group is null or g.name = p_group)
  order by d.id desc
  limit p_limit offset p_offset
$$;

-- Delivers dead letters again: to their own group, in their own partition, at their own place, attempts counted anew.
-- Where retention has taken the message from the log meanwhile it is put back from the letter.
-- Parameters: queue; group, error code and letter ids (null: any); the most letters; whether only to count them.
-- Result: the `woken` lanes, count = letters moved (or that would be).
-- Locks: partitions by id, lanes by (partition, group), the letters.
create or replace function rouse.redrive(
  p_queue text, p_group text default null, p_error_code text default null, p_ids bigint[] default null,
  p_limit integer default 1000, p_dry_run boolean default false
) returns table (queue text, partition text, consumer_group text, namespace text, task text, count bigint)
language plpgsql
as $$
declare
  v_queue rouse.queues;
  v_ids bigint[];
  v_partitions bigint[];
begin
  perform rouse.raise_durability();
  select * into v_queue from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  select array_agg(d.id), array_agg(distinct d.partition_id) into v_ids, v_partitions
  from (
    select d.id, d.partition_id from rouse.dead_letters d join rouse.groups g on g.id = d.group_id
    where d.queue_id = v_queue.id and (p_group is null or g.name = p_group)
      and (p_error_code is null or d.error_code = p_error_code) and (p_ids is null or d.id = any (p_ids))
    order by d.id limit p_limit
  ) d;
  if p_dry_run then
    return query
    select p_queue, p.name, g.name, v_queue.namespace, v_queue.task, count(*)
    from rouse.dead_letters d join rouse.groups g on g.id = d.group_id left join rouse.partitions p on p.id = d.partition_id
    where d.id = any (v_ids) group by p.name, g.name;
    return;
  end if;
  perform from rouse.partitions p where p.id = any (v_partitions) order by p.id for no key update;
  perform from rouse.lanes l
  where (l.partition_id, l.group_id) in (select d.partition_id, d.group_id from rouse.dead_letters d where d.id = any (v_ids))
  order by l.partition_id, l.group_id for no key update;
  -- barrier: redrive-locked
  return query
  with letters as (
    delete from rouse.dead_letters d where d.id = any (v_ids)
      and exists (select from rouse.lanes l where l.partition_id = d.partition_id and l.group_id = d.group_id)
    returning d.*
  ), restored as (
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select distinct on (d.partition_id, d.seq) d.partition_id, d.seq, d.message_id, d.created_at, d.transaction_id, d.trace_id, d.payload, d.headers
    from letters d
    on conflict on constraint messages_pkey do nothing
  ), again as (
    insert into rouse.redeliveries (partition_id, group_id, seq, attempt, alone, due_at, announced)
    select d.partition_id, d.group_id, d.seq, 0, true, rouse.now(), true from letters d
    on conflict on constraint redeliveries_pkey do nothing
  ), opened as (
    update rouse.lanes l set ready = true
    where not l.ready and (l.partition_id, l.group_id) in (select d.partition_id, d.group_id from letters d)
  )
  select p_queue, p.name, g.name, v_queue.namespace, v_queue.task, count(*)
  from letters d join rouse.partitions p on p.id = d.partition_id join rouse.groups g on g.id = d.group_id
  group by p.name, g.name;
end $$;
