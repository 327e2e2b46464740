-- Stores how far the holders of messages are. Each report replaces the last one of its message and group.
-- Parameters: per report the message's id, its lease id, partition id and seq, and the progress as JSON text.
-- Result: the 1-based positions of accepted reports. A report is refused if the lease is lost, or does not hold
--   this message. RS400 if a queue is encrypted: the progress would be stored in plain text.
-- Locks: the results by (partition, seq, group). The lease is read unlocked: a lock would make acks reject it. So
--   a report that began before its lease ended may be stored shortly after. It is not durable: a crash may lose
--   the last reports.
create or replace function rouse.report_progress(
  p_ids uuid[], p_lease_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_progress text[]
) returns table (n integer)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now constant timestamptz := rouse.now();
  v_held record;
begin
  perform rouse.require_read_committed();
  perform set_config('synchronous_commit', 'off', true);
  select array_agg(i.n::integer) as ns, array_agg(s.group_id) as groups into v_held
  from unnest(p_ids, p_lease_ids, p_partition_ids, p_seqs) with ordinality i(id, lease_id, partition_id, seq, n)
  cross join lateral (
    select s.group_id, s.from_seq, s.unacked from rouse.leases s
    where s.id = i.lease_id and s.partition_id = i.partition_id and s.expires_at > v_now offset 0) s
  where rouse.bits_after(s.from_seq, s.unacked, i.seq) is not null
    and exists (select from rouse.messages m
      where m.partition_id = i.partition_id and m.seq = i.seq and rouse.message_id(m.id, m.partition_id, m.seq) = i.id);
  if v_held.ns is null then
    return;
  end if;
  perform rouse.refuse_encrypted(v_held.groups, 'progress');
  -- barrier: progress-checked
  insert into rouse.results as r (partition_id, seq, group_id, progress, progress_at)
  -- The last of several reports about one message counts.
  select distinct on (p_partition_ids[h.n], p_seqs[h.n], h.group_id)
    p_partition_ids[h.n], p_seqs[h.n], h.group_id, p_progress[h.n], v_now
  from unnest(v_held.ns, v_held.groups) h(n, group_id)
  order by 1, 2, 3, h.n desc
  on conflict on constraint results_pkey do update set progress = excluded.progress, progress_at = excluded.progress_at;
  return query select unnest(v_held.ns);
end $$;
