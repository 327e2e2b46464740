-- A message by its id.

-- Where a message with this id is in the log.
-- Parameters: the id; the place that it names, or nulls. Result: partition and seq, nulls if it is not in the
--   log. Locks: none.
create or replace function rouse.place_of(
  p_id uuid, p_partition_id bigint, p_seq bigint, out partition_id bigint, out seq bigint
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  select m.partition_id, m.seq into partition_id, seq from rouse.messages m
  where m.partition_id = p_partition_id and m.seq = p_seq and rouse.message_id(m.id, m.partition_id, m.seq) = p_id;
  if not found then
    select i.partition_id, i.seq into partition_id, seq from rouse.message_ids i where i.id = p_id;
  end if;
end $$;

-- A message with its status in every group, every recorded attempt, results and progress, wherever it is:
-- scheduled, in the log, cancelled, or only among the dead letters, because retention has removed it from the log.
-- Parameters: the id; the place that it names, or nulls.
-- Result: one row, or none, as find_message, with the partition id, the time of the cancellation, from when
--   retention may remove the message (null: not known), and its options as shown_options returns them. A message that was removed in all groups, and that
--   retention is about to delete, is not found.
-- Locks: none.
create or replace function rouse.find_by_id(p_id uuid, p_partition_id bigint, p_seq bigint)
returns table (
  queue text, partition text, partition_id bigint, seq bigint, message_id uuid, created_at timestamptz, transaction_id text,
  trace_id text, payload text, headers text, due_at timestamptz, cancelled_at timestamptz, kept_until timestamptz, groups jsonb,
  options jsonb
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_place record;
begin
  return query
  select s.queue, rouse.shown_partition(s.partition), null::bigint, null::bigint, p_id, s.created_at, s.transaction_id, s.trace_id, s.payload, s.headers,
    s.due_at, null::timestamptz, null::timestamptz, '[]'::jsonb, rouse.shown_options(s.partition, s.options, s.due_at)
  from rouse.scheduled s where s.message_id = p_id
  union all
  select c.queue, rouse.shown_partition(c.partition), null, null, p_id, c.created_at, c.transaction_id, c.trace_id, c.payload, c.headers,
    c.due_at, c.cancelled_at, null, '[]', rouse.shown_options(c.partition, c.options, c.due_at)
  from rouse.cancelled c where c.id = p_id
  limit 1;
  if found then
    return;
  end if;
  v_place := rouse.place_of(p_id, p_partition_id, p_seq);
  return query
  select q.name, rouse.shown_partition(p.name), p.id, m.seq, p_id, m.created_at, m.transaction_id, m.trace_id, m.payload, m.headers, null::timestamptz,
    o.cancelled_at,
    case when q.retention_enabled then m.created_at + interval '1 millisecond' * least(
      nullif(q.retention_ms, 0), nullif(q.ttl_ms, 0), nullif(q.wait_ms_max, 0),
      case when q.completed_retention_ms > 0 and not rouse.is_open(p.id, q.id, p.tail, m.seq, null, 0) then q.completed_retention_ms end) end,
    g.groups, rouse.shown_options(p.name, null, null, o)
  from rouse.messages m
  join rouse.partitions p on p.id = m.partition_id
  join rouse.queues q on q.id = p.queue_id
  left join rouse.message_options o on o.partition_id = m.partition_id and o.seq = m.seq
  cross join lateral (
    select coalesce(jsonb_agg(rouse.message_in_group(g, p, m.seq) order by g.name), '[]') as groups
    from rouse.groups g where g.queue_id = q.id) g
  where m.partition_id = v_place.partition_id and m.seq = v_place.seq
    and (m.seq >= p.tail or jsonb_path_exists(g.groups, '$[*] ? (@.status == "leased" || @.status == "retrying" || @.status == "dead")'));
  if found then
    return;
  end if;
  return query
  select q.name, rouse.shown_partition(p.name), d.partition_id, d.seq, p_id, d.created_at, d.transaction_id, d.trace_id, d.payload, d.headers, null::timestamptz,
    null::timestamptz, null::timestamptz,
    (select coalesce(jsonb_agg(rouse.message_in_group(g, p, d.seq) order by g.name), '[]') from rouse.groups g where g.queue_id = q.id),
    rouse.shown_options(p.name, d.options, null)
  from rouse.dead_letters d
  join rouse.partitions p on p.id = d.partition_id
  join rouse.queues q on q.id = d.queue_id
  where d.message_id = p_id
  order by d.id desc limit 1;
end $$;
