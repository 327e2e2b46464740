-- A pop in which waiters may get a lease per message, with its own id, instead of one for all.
-- Parameters: as pop, without defaults; then per waiter, whether it gets a lease per message (null: none does). Of
--   an ordered lane such a waiter gets one message at most.
-- Result: as pop. Locks: as pop.
create or replace function rouse.pop_v2(
  p_queue text, p_partition text, p_namespace text, p_task text, p_group text,
  p_batches integer[], p_lane_limits integer[], p_leases_ms bigint[], p_auto_acks boolean[], p_holders text[],
  p_subscription text, p_from timestamptz, p_after bigint, p_durable boolean, p_bytes_max bigint, p_lease_each boolean[]
) returns table (
  status text, waiter integer, lease_id uuid, queue text, partition_id bigint, partition text, attempt integer,
  expires_ms double precision, seq bigint, message_id uuid, created_ms double precision, transaction_id text,
  trace_id text, payload text, headers text
)
language plpgsql
set lock_timeout = '250ms'
as $$
begin
  return query select * from rouse.pop_general(p_queue, p_partition, p_namespace, p_task, p_group, p_batches, p_lane_limits, p_leases_ms,
    p_auto_acks, p_holders, p_subscription, p_from, p_after, p_durable, p_bytes_max, p_lease_each);
end $$;
