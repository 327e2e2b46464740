-- A push with two targets that are the same partition: some messages name `Default`, others no partition, and
-- the ordering of the queue is not keyed. Sorts the messages by partition, pushes them, and maps the result
-- back.
-- Parameters: as push_v2, with the names of all partitions. Result: as push_v2. Locks: as push_v2.
create or replace function rouse.push_merged(
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[],
  p_transaction_ids text[], p_trace_ids text[], p_headers text[], p_delays_ms bigint[], p_due_at timestamptz[],
  p_options text[]
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[], replaced integer[], partition text
)
language plpgsql
as $$
declare
  v record;
  v_merged integer[];   -- per target, its position among the merged targets
  v_order integer[];    -- the messages, sorted by merged target
  v_state text;
  v_message text;
  v_detail jsonb;
begin
  select array_agg(t.queue order by t.n) as queues, array_agg(t.partition order by t.n) as partitions into v
  from (
    select t.queue, t.partition, min(t.n) as n from unnest(p_queues, p_partitions) with ordinality t(queue, partition, n)
    group by t.queue, t.partition
  ) t;
  v_merged := array(
    select m.n::integer from unnest(p_queues, p_partitions) with ordinality t(queue, partition, n)
    join unnest(v.queues, v.partitions) with ordinality m(queue, partition, n) on m.queue = t.queue and m.partition = t.partition
    order by t.n);
  v_order := array(
    select m.n::integer from unnest(p_targets) with ordinality m(target, n) order by v_merged[m.target], m.n);
  return query
  with pushed as materialized (
    select r.* from rouse.push_general(v.queues, v.partitions,
      array(select v_merged[p_targets[o.n]] from unnest(v_order) with ordinality o(n, place) order by o.place),
      array(select p_ids[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place),
      array(select p_payloads[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place),
      case when p_transaction_ids is not null then
        array(select p_transaction_ids[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place) end,
      case when p_trace_ids is not null then
        array(select p_trace_ids[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place) end,
      case when p_headers is not null then
        array(select p_headers[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place) end,
      case when p_delays_ms is not null then
        array(select p_delays_ms[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place) end,
      case when p_due_at is not null then
        array(select p_due_at[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place) end,
      case when p_options is not null then
        array(select p_options[o.n] from unnest(v_order) with ordinality o(n, place) order by o.place) end) r
  ), placed as (
    select o.n, o.place, p_targets[o.n] as target, r.target as merged, r.partition_id, r.first_seq, r.namespace, r.task,
      r.originals[array_position(r.duplicates, o.place::integer)] as original,
      coalesce(o.place::integer = any (r.scheduled), false) as is_scheduled, coalesce(o.place::integer = any (r.replaced), false) as is_replaced
    from unnest(v_order) with ordinality o(n, place) join pushed r on r.target = v_merged[p_targets[o.n]]
  ), counted as (
    -- How many messages of the partition were added up to this one.
    select p.*, count(*) filter (where p.original is null and not p.is_scheduled) over (partition by p.merged order by p.place) as added
    from placed p
  )
  select c.target, c.partition_id,
    c.first_seq + min(c.added - case when c.original is null and not c.is_scheduled then 1 else 0 end),
    (count(*) filter (where c.original is null and not c.is_scheduled))::integer, c.namespace, c.task,
    array_agg(c.n order by c.n) filter (where c.original is not null),
    array_agg(c.original order by c.n) filter (where c.original is not null),
    array_agg(c.n order by c.n) filter (where c.is_scheduled), array_agg(c.n order by c.n) filter (where c.is_replaced), p_partitions[c.target]
  from counted c
  group by c.target, c.partition_id, c.first_seq, c.namespace, c.task
  order by c.target;
exception when sqlstate 'RS400' or sqlstate 'RS409' then
  -- The error names a message by its position after the sort.
  get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail;
  raise exception using errcode = v_state, message = v_message,
    detail = (v_detail || jsonb_strip_nulls(jsonb_build_object('item', v_order[(v_detail ->> 'item')::integer])))::text;
end $$;
