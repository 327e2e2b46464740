-- Acknowledges messages as completed, failed (retried with the queue's delays, a dead letter after the last
-- attempt), retry (redelivered without charging the attempt) or dlq (a dead letter at once). If the lease of
-- an item has expired or does not hold the message, the item is rejected and changes nothing.
-- Parameters: per item the lease id, the partition id and seq (both null: everything that the lease still
--   holds); status, error code, error text and delay in ms, each null if no item has one (without statuses,
--   all items are completed); a group to which all leases must belong, or null.
-- Result: a wake hint for each lane that was freed; then a last row with the 1-based positions of the
--   rejected items, and of the items that became dead letters.
-- Locks: lanes by (partition, group), then leases by id with SKIP LOCKED. If an open ack_in has locked the
--   lease of an item, the item is rejected.
create or replace function rouse.ack(
  p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[],
  p_statuses text[] default null, p_error_codes text[] default null, p_error_messages text[] default null,
  p_delays_ms bigint[] default null, p_group text default null
) returns table (rejected integer[], dead integer[], hint rouse.wake_hint)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v rouse.leases;
  v_setting text;
begin
  -- The short path: everything that one ordered lease still holds is completed.
  if cardinality(p_lease_ids) = 1 and cardinality(p_seqs) = 1 and p_seqs[1] is null and p_partition_ids[1] is null
     and p_statuses is null and p_group is null and current_setting('transaction_isolation') = 'read committed' then
    select s.* into v from rouse.leases s where s.id = p_lease_ids[1] and s.ordered and not s.limited
    order by s.partition_id limit 1;
    if found then
      perform from rouse.lanes l where l.partition_id = v.partition_id and l.group_id = v.group_id for no key update;
      -- barrier: ack-lane-locked
      -- Reads the lease again under the lock of its lane. A lease over several lanes is left to the general
      -- form.
      select s.* into v from rouse.leases s
      where s.id = p_lease_ids[1] and s.partition_id = v.partition_id and s.expires_at > rouse.now()
        and not exists (select from rouse.leases o where o.id = p_lease_ids[1] and o.partition_id <> v.partition_id)
      for update skip locked;
    end if;
  end if;
  if v.id is null then
    return query select * from rouse.ack_general(p_lease_ids, p_partition_ids, p_seqs, p_statuses, p_error_codes, p_error_messages,
      p_delays_ms, p_group);
    return;
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    v_setting := set_config('synchronous_commit', 'on', true);
  end if;
  -- barrier: ack-lease-locked
  return query
  with gone as (
    delete from rouse.leases s where s.id = v.id and s.partition_id = v.partition_id
  ), freed as (
    update rouse.lanes l set lease_id = null
    where l.partition_id = v.partition_id and l.group_id = v.group_id and l.lease_id = v.id
    returning l.next
  )
  select null::integer[], null::integer[],
    row(q.name, p.name, g.name, q.namespace, q.task, greatest(p.head - f.next, 0))::rouse.wake_hint
  from freed f, rouse.partitions p, rouse.groups g, rouse.queues q
  where p.id = v.partition_id and g.id = v.group_id and q.id = g.queue_id;
  -- barrier: ack-lane-freed
  rejected := '{}';
  dead := '{}';
  return next;
end $$;
