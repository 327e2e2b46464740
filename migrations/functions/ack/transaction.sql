-- Acknowledges and pushes atomically. If any item is refused, nothing changes.
-- Parameters: the acknowledgements as for ack, then the messages as for push; either part may be absent
--   (null).
-- Result: the rows of ack (kind `ack`), then the rows of push (kind `push`).
-- Locks: the queues and partitions of the push; its unique keys; then the lanes of the ack and of the push in one
--   statement; then what ack and push lock.
create or replace function rouse.transaction(
  p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_statuses text[], p_error_codes text[],
  p_error_messages text[], p_delays_ms bigint[], p_group text,
  p_queues text[], p_partitions text[], p_targets integer[], p_ids uuid[], p_payloads text[], p_transaction_ids text[],
  p_trace_ids text[], p_headers text[], p_push_delays_ms bigint[], p_due_at timestamptz[], p_options text[] default null
) returns table (
  kind text, dead integer[], hint rouse.wake_hint,
  target integer, partition_id bigint, first_seq bigint, duplicates integer[], originals uuid[], scheduled integer[],
  replaced integer[]
)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
as $$
declare
  v record;
  v_targets bigint[];
  v_replaced bigint[] := '{}';
  v_has_unique boolean := false;
begin
  perform rouse.require_read_committed();
  if p_queues is not null then
    if p_options is not null and rouse.has_unique(p_options) then
      v_has_unique := true;
      perform rouse.share_keys(p_queues);
    end if;
    v_targets := rouse.lock_targets(p_queues, p_partitions, p_targets);
    if v_has_unique then
      v_replaced := rouse.lock_keys_of_push(p_queues, p_partitions, p_targets, p_ids, p_options);
    end if;
    perform rouse.lock_lanes(v_targets, p_lease_ids, p_statuses is not null, v_replaced);
  end if;
  -- barrier: transaction-locked
  if p_lease_ids is not null then
    for v in
      select * from rouse.ack(p_lease_ids, p_partition_ids, p_seqs, p_statuses, p_error_codes, p_error_messages, p_delays_ms, p_group)
    loop
      if cardinality(v.rejected) > 0 then
        perform rouse.raise('RS409', 'lease_lost', 'a lease no longer holds its message',
          jsonb_build_object('items', to_jsonb(v.rejected)));
      end if;
      return query
      select 'ack', v.dead, v.hint, null::integer, null::bigint, null::bigint, null::integer[], null::uuid[], null::integer[],
        null::integer[];
    end loop;
  end if;
  -- barrier: transaction-acked
  if p_queues is not null then
    return query
    select 'push', null::integer[],
      row(p_queues[r.target], r.partition, null, r.namespace, r.task, r.added)::rouse.wake_hint,
      r.target, r.partition_id, r.first_seq, r.duplicates, r.originals, r.scheduled, r.replaced
    from rouse.push_v2(p_queues, p_partitions, p_targets, p_ids, p_payloads, p_transaction_ids, p_trace_ids, p_headers,
      p_push_delays_ms, p_due_at, p_options) r;
  end if;
  -- barrier: transaction-pushed
end $$;

-- Creates missing targets and locks all targets, so that nothing later in the transaction waits for a
-- partition while it holds a lane.
-- Parameters: parallel arrays of queue and partition names; per message its target, so that an error can name
--   the message.
-- Result: the partition ids.
-- Locks: queues as lock_queues, partitions by id.
create or replace function rouse.lock_targets(p_queues text[], p_partitions text[], p_targets integer[]) returns bigint[]
language plpgsql
as $$
declare
  v_partitions text[] := p_partitions;
  v_targets record;
  v_locked integer;
begin
  if array_position(p_partitions, null) is not null then
    -- The queues are locked first, so that the push finds the same partitions.
    perform rouse.create_queues(p_queues, p_targets);
    perform rouse.lock_queues(p_queues, p_partitions);
    v_partitions := rouse.name_partitions(p_queues, p_partitions, p_targets);
  end if;
  v_targets := rouse.find_targets(p_queues, v_partitions);
  if array_position(v_targets.partition_ids, null) is not null then
    perform rouse.create_targets(p_queues, v_partitions, p_targets);
    v_targets := rouse.find_targets(p_queues, v_partitions);
  else
    -- The queues are locked even if all targets exist: if a size limit were set later, the push would wait
    -- for its queue while it holds partitions.
    perform rouse.lock_queues(p_queues, p_partitions);
  end if;
  with locked as (
    select p.id from rouse.partitions p where p.id = any (v_targets.partition_ids) order by p.id for no key update
  )
  select count(*) into v_locked from locked;
  if v_locked <> (select count(distinct i) from unnest(v_targets.partition_ids) i) then
    perform rouse.refuse_targets(v_targets.partition_ids);
  end if;
  return v_targets.partition_ids;
end $$;

-- Locks the lanes that the acks of a transaction will lock and those that its pushes will wake, in one sorted
-- statement. Otherwise two transactions that each consume what the other produces would deadlock.
-- Parameters: partitions that the caller has locked (so that no pop can settle their lanes); lease ids;
--   whether to include the lanes of unordered leases; partitions of which to lock all lanes.
-- Result: nothing. Locks: lanes by (partition, group).
create or replace function rouse.lock_lanes(p_partition_ids bigint[], p_lease_ids uuid[], p_lanes_too boolean, p_all_of bigint[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v record;
begin
  select coalesce(array_agg(s.partition_id), '{}') as partitions, array_agg(s.group_id) as groups into v
  from rouse.leases s where s.id = any (p_lease_ids) and (s.ordered or s.lane_limited or p_lanes_too);
  perform from rouse.lanes l
  where l.partition_id = any (p_partition_ids || v.partitions || p_all_of)
    and ((not l.ready and l.partition_id = any (p_partition_ids)) or l.partition_id = any (p_all_of)
      or exists (select from unnest(v.partitions, v.groups) t(p, g) where t.p = l.partition_id and t.g = l.group_id))
  order by l.partition_id, l.group_id
  for no key update;
end $$;
