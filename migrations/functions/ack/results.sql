-- Results: what consumers return with their acks. A call without results does not come here.

-- Acknowledges messages, and stores the results of those that it accepts. Nothing is acknowledged if a result
-- cannot be stored.
-- Parameters: as ack, then per item its result as JSON text, or null. An item with a result names its message
--   and is completed.
-- Result: as ack, with a wake hint for requests that wait for a message to end. Locks: as ack, then the
--   results by (partition, seq, group).
create or replace function rouse.ack_v2(
  p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_statuses text[], p_error_codes text[], p_error_messages text[],
  p_delays_ms bigint[], p_group text, p_results text[]
) returns table (rejected integer[], dead integer[], hint rouse.wake_hint)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_leases constant rouse.leases[] := rouse.leases_with_results(p_lease_ids, p_partition_ids, p_results);
  v_last record;
begin
  for v_last in
    select * from rouse.ack_general(p_lease_ids, p_partition_ids, p_seqs, p_statuses, p_error_codes, p_error_messages, p_delays_ms, p_group)
  loop
    exit when v_last.rejected is not null;
    hint := v_last.hint;
    return next;
  end loop;
  for hint in select * from rouse.keep_results(v_leases, p_seqs, p_results, v_last.rejected) loop
    return next;
  end loop;
  rejected := v_last.rejected;
  dead := v_last.dead;
  hint := null;
  return next;
end $$;

-- A transaction whose acks have results.
-- Parameters: per ack its result as JSON text, or null; then as transaction.
-- Result: as transaction, with a wake hint for requests that wait for a message to end. Locks: as
--   transaction, then the results by (partition, seq, group).
create or replace function rouse.transaction_with_results(
  p_results text[],
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
  v_leases constant rouse.leases[] := rouse.leases_with_results(p_lease_ids, p_partition_ids, p_results);
begin
  perform rouse.require_read_committed();
  -- These hints come first, because the row with the dead letters must be the last one of the acks. They are
  -- correct before the acks are made: if an ack is rejected, the whole transaction fails.
  return query
  select 'ack', null::integer[], h, null::integer, null::bigint, null::bigint, null::integer[], null::uuid[], null::integer[],
    null::integer[]
  from rouse.ended_hints(array(select l.group_id from unnest(v_leases) l)) h;
  return query
  select * from rouse.transaction(p_lease_ids, p_partition_ids, p_seqs, p_statuses, p_error_codes, p_error_messages, p_delays_ms, p_group,
    p_queues, p_partitions, p_targets, p_ids, p_payloads, p_transaction_ids, p_trace_ids, p_headers, p_push_delays_ms, p_due_at, p_options);
  perform rouse.keep_results(v_leases, p_seqs, p_results, '{}');
end $$;

-- The leases of items with results, as they are before the ack. Only columns are used that never change.
-- Parameters: per item the lease id, the partition id and the result. Result: per item its lease; null if it has
--   no result, or there is no such lease: then the ack rejects it. Locks: none.
create or replace function rouse.leases_with_results(p_lease_ids uuid[], p_partition_ids bigint[], p_results text[]) returns rouse.leases[]
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return array(
    select (select s from rouse.leases s where s.id = i.lease_id and s.partition_id = i.partition_id and i.result is not null)
    from unnest(p_lease_ids, p_partition_ids, p_results) with ordinality i(lease_id, partition_id, result, n) order by i.n);
end $$;

-- Stores results, in the transaction of the ack. A result of an earlier delivery is replaced.
-- Parameters: per item its lease, seq and result; the 1-based positions of rejected items.
-- Result: a wake hint per queue for requests that wait for a message to end. RS400 if a queue is encrypted:
--   the result would be stored in plain text.
-- Locks: the results by (partition, seq, group). A report of progress may hold one, for a moment.
create or replace function rouse.keep_results(p_leases rouse.leases[], p_seqs bigint[], p_results text[], p_rejected integer[])
returns setof rouse.wake_hint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_kept integer[];
  v_lease rouse.leases;
  v_n integer;
begin
  v_kept := array(
    select i.n from unnest(p_results) with ordinality i(result, n)
    where i.result is not null and i.n <> all (p_rejected) and (p_leases[i.n]).id is not null order by i.n);
  if cardinality(v_kept) = 0 then
    return;
  end if;
  perform rouse.refuse_encrypted(array(select (p_leases[k]).group_id from unnest(v_kept) k), 'result');
  insert into rouse.results as r (partition_id, seq, group_id, result, completed_at)
  select (p_leases[k]).partition_id, p_seqs[k], (p_leases[k]).group_id, p_results[k], v_now
  from unnest(v_kept) k
  order by 1, 2, 3
  on conflict on constraint results_pkey do update set result = excluded.result, completed_at = excluded.completed_at;
  -- barrier: results-kept
  foreach v_n in array v_kept loop
    v_lease := p_leases[v_n];
    if not v_lease.recorded then  -- otherwise the ack has recorded it
      perform rouse.record_completed(v_lease.partition_id, v_lease.group_id, v_lease.attempt, v_lease.holder, v_lease.delivered_at,
        array[p_seqs[v_n]], v_now);
    end if;
  end loop;
  return query select * from rouse.ended_hints(array(select (p_leases[k]).group_id from unnest(v_kept) k));
end $$;

-- Records completed attempts.
-- Parameters: partition, group, attempt, holder and time of the delivery; the seqs; the time now.
-- Result: nothing. Locks: none.
create or replace function rouse.record_completed(
  p_partition_id bigint, p_group_id integer, p_attempt integer, p_holder text, p_delivered_at timestamptz, p_seqs bigint[], p_now timestamptz
) returns void
language plpgsql
as $$
begin
  insert into rouse.attempts (partition_id, seq, group_id, attempt, outcome, holder, delivered_at, ended_at)
  select p_partition_id, s, p_group_id, p_attempt, 'completed', p_holder, p_delivered_at, p_now from unnest(p_seqs) s;
end $$;

-- Hints for requests that wait for a message to end. They wait in a consumer group of their own, whose name
-- no user can choose.
-- Parameters: the ids of groups in which messages ended. Result: a wake hint per queue. Locks: none.
create or replace function rouse.ended_hints(p_group_ids integer[]) returns setof rouse.wake_hint
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return query
  select q.name, null::text, chr(31), q.namespace, q.task, null::bigint
  from (select distinct g.queue_id from rouse.groups g where g.id = any (p_group_ids)) g join rouse.queues q on q.id = g.queue_id;
end $$;

-- Refuses to store what a consumer reports about messages of an encrypted queue.
-- Parameters: group ids, the field of the request. Result: nothing, or RS400. Locks: none.
create or replace function rouse.refuse_encrypted(p_group_ids integer[], p_field text) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_queue text;
begin
  select q.name into v_queue
  from rouse.groups g join rouse.queues q on q.id = g.queue_id where g.id = any (p_group_ids) and q.encryption limit 1;
  if found then
    perform rouse.raise('RS400', 'invalid_request',
      format('queue "%s" is encrypted: its messages have no %s, which would be stored in plain text', v_queue, p_field),
      jsonb_build_object('field', p_field));
  end if;
end $$;
