-- Moves on everything whose time has come: scheduled messages into the log, blocked lanes and redeliveries back to
-- deliverable, lanes freed by ack_in opened. Any node may call it at any time; row locks arbitrate.
-- Parameters: the most rows of each kind.
-- Result: the `woken` lanes (no group: all groups of the queue).
-- Locks: partitions by id with SKIP LOCKED, then lanes by (partition, group) with SKIP LOCKED.
create or replace function rouse.promote_due(p_limit integer default 1000)
returns table (queue text, partition text, consumer_group text, namespace text, task text, count bigint)
language plpgsql
as $$
begin
  perform rouse.raise_durability();
  return query select * from rouse.promote_scheduled(p_limit);
  return query select * from rouse.promote_lanes(p_limit);
  return query select * from rouse.promote_freed(p_limit);
end $$;

-- Scheduled messages into the log, partition by partition and in order of (due time, id).
-- Parameters and result: as promote_due. Locks: as promote_due.
create or replace function rouse.promote_scheduled(p_limit integer)
returns table (queue text, partition text, consumer_group text, namespace text, task text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now timestamptz := rouse.now();
  v_due record;
  v_targets record;
  v_target record;
  v_rows record;
begin
  select array_agg(d.queue) as queues, array_agg(d.partition) as partitions into v_due
  from (
    select distinct s.queue, s.partition
    from (select x.queue, x.partition from rouse.scheduled x where x.due_at <= v_now order by x.due_at limit p_limit) s
  ) d;
  if v_due.queues is null then
    return;
  end if;
  v_targets := rouse.find_targets(v_due.queues, v_due.partitions);
  if array_position(v_targets.partition_ids, null) is not null then
    perform rouse.create_targets(v_due.queues, v_due.partitions);
    v_targets := rouse.find_targets(v_due.queues, v_due.partitions);
  end if;
  for v_target in
    select p.id, v_due.queues[t.target] as queue, v_due.partitions[t.target] as partition, t.namespace, t.task
    from unnest(v_targets.partition_ids, v_targets.targets, v_targets.namespaces, v_targets.tasks) t(id, target, namespace, task)
    join rouse.partitions p on p.id = t.id
    order by p.id
    for no key update of p skip locked
  loop
    -- barrier: promote-locked
    -- A new statement under the lock: two promoters never interleave one partition.
    with taken as (
      delete from rouse.scheduled s
      where s.id in (
        select x.id from rouse.scheduled x
        where x.queue = v_target.queue and x.partition = v_target.partition and x.due_at <= v_now
        order by x.due_at, x.id
        limit p_limit)
      returning s.*
    )
    select array_agg(t.message_id order by t.due_at, t.id) as ids, array_agg(t.transaction_id order by t.due_at, t.id) as keys,
      array_agg(t.trace_id order by t.due_at, t.id) as traces, array_agg(t.payload order by t.due_at, t.id) as payloads,
      array_agg(t.headers order by t.due_at, t.id) as headers, array_agg(t.origin order by t.due_at, t.id) as origins,
      count(*) as total
    into v_rows from taken t;
    -- barrier: promote-taken
    if v_rows.total > 0 then
      count := rouse.append(v_target.id, v_rows.ids, v_rows.keys, v_rows.traces, v_rows.payloads, v_rows.headers, v_rows.origins);
      queue := v_target.queue;
      partition := v_target.partition;
      consumer_group := null;
      namespace := v_target.namespace;
      task := v_target.task;
      return next;
    end if;
  end loop;
end $$;

-- Appends promoted messages to one partition. Keys of SQL producers are checked here, in their turn; those of the
-- broker were checked when it scheduled the message.
-- Parameters: a locked partition; by message id, key, trace id, payload, headers, origin. Result: how many were added.
-- Locks: its lanes that are not ready.
create or replace function rouse.append(
  p_partition_id bigint, p_ids uuid[], p_keys text[], p_traces text[], p_payloads text[], p_headers text[], p_origins text[]
) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now timestamptz;
  v_first bigint;
  v_added bigint;
  v_window_ms bigint;
begin
  select q.dedup_window_ms into v_window_ms
  from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = p_partition_id;
  select p.head, greatest(rouse.now(), p.last_created_at) into v_first, v_now from rouse.partitions p where p.id = p_partition_id;
  insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
  select p_partition_id, v_first + row_number() over (order by m.n) - 1, m.id, v_now, m.key, m.trace_id, m.payload, m.headers
  from (
    select i.*, row_number() over (partition by i.key, i.key is null or i.origin = 'broker' order by i.n) as turn
    from rows from (unnest(p_ids), unnest(p_keys), unnest(p_traces), unnest(p_payloads), unnest(p_headers), unnest(p_origins))
      with ordinality i(id, key, trace_id, payload, headers, origin, n)
  ) m
  left join rouse.dedup d on d.partition_id = p_partition_id and d.key = m.key and d.expires_at > v_now and m.origin = 'sql'
    and v_window_ms > 0
  where d.key is null and (m.key is null or m.turn = 1 or m.origin = 'broker' or v_window_ms = 0);
  get diagnostics v_added = row_count;
  update rouse.partitions p set head = p.head + v_added, last_created_at = v_now where p.id = p_partition_id;
  if v_window_ms > 0 then
    insert into rouse.dedup as d (partition_id, key, message_id, seq, expires_at)
    -- One row a key: a key whose window ended while its message waited may be in the batch twice.
    select distinct on (m.transaction_id) p_partition_id, m.transaction_id, m.id, m.seq, v_now + v_window_ms * interval '1 millisecond'
    from rouse.messages m
    where m.partition_id = p_partition_id and m.seq >= v_first and m.transaction_id is not null
    order by m.transaction_id, m.seq desc
    on conflict on constraint dedup_pkey do update
    set message_id = excluded.message_id, seq = excluded.seq, expires_at = greatest(d.expires_at, excluded.expires_at);
  end if;
  perform rouse.wake_lanes(array[p_partition_id]);
  return v_added;
end $$;
