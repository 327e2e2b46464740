-- Acknowledges messages, then pops, in one transaction. The result is that of the two calls in this order,
-- except that an error of the pop also undoes the acks: the caller then repeats them alone.
-- Parameters: as ack, then as pop without p_durable. The lease always survives a crash of the database,
--   because the acks must.
-- Result: the rows of ack (with `rejected` or a hint), then the rows of pop (with `status` or a message).
--   There are no rows of pop if the pop could need the lock of a queue or a group: the acks hold lanes, and
--   these locks come before lanes. The caller then pops in a separate call. This is so if the call names no
--   queue, if its group does not exist yet, and if the queue limits messages in flight or has a rate.
-- Locks: as ack, then as pop.
create or replace function rouse.ack_and_pop(
  p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_statuses text[], p_error_codes text[],
  p_error_messages text[], p_delays_ms bigint[], p_ack_group text,
  p_queue text, p_partition text, p_namespace text, p_task text, p_group text,
  p_batches integer[], p_lane_limits integer[], p_leases_ms bigint[], p_auto_acks boolean[], p_holders text[],
  p_subscription text, p_from timestamptz, p_after bigint, p_bytes_max bigint
) returns table (
  status text, waiter integer, lease_id uuid, queue text, partition_id bigint, partition text, attempt integer,
  expires_ms double precision, seq bigint, message_id uuid, created_ms double precision, transaction_id text,
  trace_id text, payload text, headers text, rejected integer[], dead integer[], hint rouse.wake_hint
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return query
  select null::text, null::integer, null::uuid, null::text, null::bigint, null::text, null::integer, null::float8, null::bigint,
    null::uuid, null::float8, null::text, null::text, null::text, null::text, a.rejected, a.dead, a.hint
  from rouse.ack(p_lease_ids, p_partition_ids, p_seqs, p_statuses, p_error_codes, p_error_messages, p_delays_ms, p_ack_group) a;
  -- barrier: ack-and-pop-acked
  if exists (
    select from rouse.queues q, rouse.groups g
    where q.name = p_queue and q.in_flight_max = 0 and q.rate_limit = 0 and g.queue_id = q.id and g.name = p_group
  ) then
    return query
    select p.*, null::integer[], null::integer[], null::rouse.wake_hint
    from rouse.pop(p_queue, p_partition, p_namespace, p_task, p_group, p_batches, p_lane_limits, p_leases_ms, p_auto_acks, p_holders,
      p_subscription, p_from, p_after, true, p_bytes_max) p;
  end if;
end $$;
