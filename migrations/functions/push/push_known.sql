-- The rest of a push to one partition of which some keys are known or occur twice.
-- Parameters: the partition, which the caller has locked; its head and the time of its last message; the
--   dedupe window in ms, namespace and task of its queue; then as push; the time now.
-- Result: as push. Keys that the caller has stored for messages of this call are removed first, because
--   sort_push must not take them for known ones. A call that is repeated with the same ids finds the keys of
--   its first run: these have a seq below the head, or none if the message is scheduled, and stay.
-- Locks: the lanes of the partition that are not ready, by group.
create or replace function rouse.push_known(
  p_partition_id bigint, p_head bigint, p_last_created_at timestamptz, p_dedup_ms bigint, p_namespace text, p_task text,
  p_ids uuid[], p_payloads text[], p_transaction_ids text[], p_trace_ids text[], p_headers text[], p_now timestamptz
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[], replaced integer[]
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_sorted record;
begin
  delete from rouse.dedup d
  where d.partition_id = p_partition_id and d.key = any (p_transaction_ids) and d.message_id = any (p_ids)
    and d.seq >= p_head;
  v_sorted := rouse.sort_push(array[p_partition_id], '{0}', array[p_dedup_ms], array[p_head],
    array_fill(1, array[cardinality(p_ids)]), p_ids, p_transaction_ids, null, null, p_now, null);
  added := cardinality(array_remove(v_sorted.offsets, null));
  if added > 0 then
    update rouse.partitions p set head = p_head + added, last_created_at = greatest(p_now, p_last_created_at) where p.id = p_partition_id;
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select p_partition_id, p_head + m.seq_offset, m.id, greatest(p_now, p_last_created_at), m.transaction_id, m.trace_id, m.payload, m.headers
    from unnest(v_sorted.offsets, p_ids, p_transaction_ids, p_trace_ids, p_payloads, p_headers)
      m(seq_offset, id, transaction_id, trace_id, payload, headers)
    where m.seq_offset is not null;
  end if;
  -- barrier: push-known-inserted
  perform rouse.wake_lanes(array[p_partition_id]);
  select array_agg(i.n::integer order by i.n), array_agg(i.original order by i.n) into duplicates, originals
  from unnest(v_sorted.originals) with ordinality i(original, n) where i.original is not null;
  target := 1;
  partition_id := p_partition_id;
  first_seq := p_head;
  namespace := p_namespace;
  task := p_task;
  return next;
end $$;
