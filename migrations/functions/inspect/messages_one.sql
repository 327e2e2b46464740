-- One message and its history.

-- Finds a message by its transaction id. The log has no index by this id. The id itself may contain the
-- position (`partition-seq`). Otherwise the seq comes from the dedupe key or a dead letter, or from a search
-- through the newest messages of the partition.
-- Parameters: the partition, the transaction id. Result: the seq, or null if it was not found. Locks: none.
create or replace function rouse.seq_of(p_partition_id bigint, p_transaction_id text) returns bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_looked_through constant bigint := 50000;
  v_seq bigint;
begin
  if p_transaction_id ~ ('^' || p_partition_id || '-[1-9][0-9]{0,17}$') then
    v_seq := split_part(p_transaction_id, '-', 2)::bigint;
    if exists (select from rouse.messages m where m.partition_id = p_partition_id and m.seq = v_seq and m.transaction_id is null)
       or exists (select from rouse.dead_letters d where d.partition_id = p_partition_id and d.seq = v_seq and d.transaction_id is null) then
      return v_seq;
    end if;
  end if;
  select d.seq into v_seq from rouse.dedup d join rouse.messages m on m.partition_id = d.partition_id and m.seq = d.seq
  where d.partition_id = p_partition_id and d.key = p_transaction_id and m.transaction_id = p_transaction_id;
  if v_seq is null then
    select d.seq into v_seq from rouse.dead_letters d
    where d.partition_id = p_partition_id and d.transaction_id = p_transaction_id order by d.id desc limit 1;
  end if;
  if v_seq is null then
    select m.seq into v_seq
    from (
      select m.seq, m.transaction_id from rouse.messages m
      where m.partition_id = p_partition_id and m.seq >= (select p.head from rouse.partitions p where p.id = p_partition_id) - v_looked_through
      order by m.seq desc offset 0
    ) m
    where m.transaction_id = p_transaction_id limit 1;
  end if;
  return v_seq;
end $$;

-- A message with its status in every group and every failed attempt.
-- Parameters: the partition, the transaction id.
-- Result: one row, or none; the groups as a list, times in ms since 1970. A message that is not in the log
--   yet has a due time but no seq.
-- Locks: none.
create or replace function rouse.find_message(p_partition_id bigint, p_transaction_id text)
returns table (
  queue text, partition text, seq bigint, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text, due_at timestamptz, groups jsonb
)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_seq constant bigint := rouse.seq_of(p_partition_id, p_transaction_id);
begin
  if v_seq is null then
    return query
    select s.queue, rouse.shown_partition(s.partition), null::bigint, s.message_id, s.created_at, s.transaction_id, s.trace_id, s.payload, s.headers, s.due_at, '[]'::jsonb
    from rouse.partitions p join rouse.queues q on q.id = p.queue_id
    join rouse.scheduled s on s.queue = q.name and s.partition = p.name
    where p.id = p_partition_id and coalesce(s.transaction_id, s.message_id::text) = p_transaction_id
    order by s.id limit 1;
    return;
  end if;
  return query
  select q.name, rouse.shown_partition(p.name), v_seq, rouse.message_id(m.id, p.id, v_seq), m.created_at, m.transaction_id, m.trace_id,
    m.payload, m.headers, null::timestamptz,
    (select coalesce(jsonb_agg(rouse.message_in_group(g, p, v_seq) order by g.name), '[]') from rouse.groups g where g.queue_id = q.id)
  from rouse.partitions p join rouse.queues q on q.id = p.queue_id
  cross join lateral (
    (select m.id, m.created_at, m.transaction_id, m.trace_id, m.payload, m.headers
     from rouse.messages m where m.partition_id = p.id and m.seq = v_seq)
    union all
    (select d.message_id, d.created_at, d.transaction_id, d.trace_id, d.payload, d.headers
     from rouse.dead_letters d where d.partition_id = p.id and d.seq = v_seq limit 1)
    limit 1
  ) m
  where p.id = p_partition_id;
end $$;

-- The status of a message in one group.
-- Parameters: the group, the partition, the seq. Result: an object, times in ms since 1970, result and progress as
--   JSON text. Locks: none.
create or replace function rouse.message_in_group(p_group rouse.groups, p_partition rouse.partitions, p_seq bigint) returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'consumerGroup', p_group.name, 'status', rouse.message_status(p_group.id, l.next, p_partition.id, p_seq),
    'attempts', coalesce(s.attempt, r.attempt, d.attempts,
      case when l.next <= p_seq then 0 else greatest(1, (select max(a.attempt) from rouse.attempts a
        where a.partition_id = p_partition.id and a.seq = p_seq and a.group_id = p_group.id)) end),
    'leaseExpiresAt', rouse.epoch_ms(s.expires_at), 'holder', s.holder, 'deliveredAt', rouse.epoch_ms(s.delivered_at), 'nextTryAt', rouse.epoch_ms(r.due_at),
    'errorCode', coalesce(r.error_code, d.error_code), 'errorMessage', coalesce(r.error_message, d.error_message),
    'result', o.result, 'completedAt', rouse.epoch_ms(o.completed_at), 'progress', o.progress, 'progressAt', rouse.epoch_ms(o.progress_at),
    'history', rouse.attempts_of(p_partition.id, p_seq, p_group.id))
  from rouse.lanes l
  left join lateral (
    select s.* from rouse.leases_of_lane(p_partition.id, p_group.id) s
    where p_seq between s.from_seq and s.to_seq and get_bit(s.unacked, (p_seq - s.from_seq)::integer) = 1 limit 1
  ) s on true
  left join rouse.redeliveries r on r.partition_id = p_partition.id and r.group_id = p_group.id and r.seq = p_seq
  left join lateral (
    select d.* from rouse.dead_letters d
    where d.partition_id = p_partition.id and d.seq = p_seq and d.group_id = p_group.id order by d.id desc limit 1
  ) d on true
  left join rouse.results o on o.partition_id = p_partition.id and o.seq = p_seq and o.group_id = p_group.id
  where l.partition_id = p_partition.id and l.group_id = p_group.id
$$;
