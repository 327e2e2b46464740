-- The other kinds that retention takes away: expired dedup keys, old dead letters, attempts and traces, and partitions
-- that are empty, have been idle and have no dead letters (whose way back they are), with their lanes.
-- Parameters: the time, ms to keep dead letters and attempts, traces, idle partitions; the most rows of each kind.
-- Result: what went, by kind.
-- Locks: queues of idle partitions FOR SHARE and those partitions by id, with SKIP LOCKED, then their lanes.
create or replace function rouse.retain_rest(
  p_now timestamptz, p_dead_ms bigint, p_traces_ms bigint, p_idle_partition_ms bigint, p_rows integer
) returns table (kind text, count bigint)
language plpgsql
as $$
declare
  v_gone bigint;
  v_ids bigint[];
begin
  delete from rouse.dedup where ctid = any (array(
    select ctid from rouse.dedup where expires_at <= p_now limit p_rows));
  get diagnostics v_gone = row_count;
  return query select 'dedup', v_gone;
  delete from rouse.dead_letters where id in (
    select id from rouse.dead_letters where failed_at <= p_now - p_dead_ms * interval '1 millisecond' order by failed_at limit p_rows);
  get diagnostics v_gone = row_count;
  return query select 'dead_letters', v_gone;
  delete from rouse.attempts where id in (
    select id from rouse.attempts where ended_at <= p_now - p_dead_ms * interval '1 millisecond' order by ended_at limit p_rows);
  get diagnostics v_gone = row_count;
  return query select 'attempts', v_gone;
  delete from rouse.traces where id in (
    select id from rouse.traces where created_at <= p_now - p_traces_ms * interval '1 millisecond' order by created_at limit p_rows);
  get diagnostics v_gone = row_count;
  return query select 'traces', v_gone;

  v_ids := array(
    select p.id from rouse.partitions p join rouse.queues q on q.id = p.queue_id
    where p.tail = p.head and q.retention_enabled and p.last_created_at <= p_now - p_idle_partition_ms * interval '1 millisecond'
      and rouse.held_from(p.id) = 9223372036854775807
      and not exists (select from rouse.messages m where m.partition_id = p.id)
      and not exists (select from rouse.dedup d where d.partition_id = p.id)
      and not exists (select from rouse.dead_letters d where d.queue_id = p.queue_id and d.partition_id = p.id)
    order by p.id limit least(p_rows, 1000)
    for update of p skip locked
    for share of q skip locked);  -- a group being born gives a lane to every partition it sees
  delete from rouse.lanes l where l.partition_id = any (v_ids);
  delete from rouse.partitions p where p.id = any (v_ids);
  return query select 'partitions', cardinality(v_ids)::bigint;
end $$;
