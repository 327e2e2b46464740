-- Removes what is no longer needed. Nodes call retention_step, which runs one bounded step of one of four
-- kinds: partitions (messages, and partitions that are empty and idle), dedupe keys, unique keys, history (dead letters,
-- attempts, traces).

-- Runs a step over partitions and, if that completes the round, a step of each other kind.
-- Parameters: server-wide ms to keep consumed messages, dead letters and attempts, traces, idle partitions;
--   the ms without a request after which a group no longer retains messages (null: never); the maximum number
--   of partitions to lock and rows to delete per call; the partition to continue after.
-- Result: the number deleted, by kind; kind `next` is the partition to continue after, 0 when the round is
--   complete; kind `passed` counts partitions that were skipped because they were locked for too long.
-- Locks: as retain_partitions, retain_keys, retain_unique and retain_history.
create or replace function rouse.retain(
  p_completed_ms bigint default 86400000, p_dead_ms bigint default 1209600000, p_traces_ms bigint default 604800000,
  p_idle_partition_ms bigint default 604800000, p_idle_group_ms bigint default null,
  p_partitions integer default 1000, p_rows integer default 10000, p_after bigint default 0
) returns table (kind text, count bigint)
language plpgsql
as $$
declare
  v_next bigint;
begin
  perform rouse.require_read_committed();
  if p_after = 0 then
    perform rouse.watch_idle_groups(p_idle_group_ms, interval '0');
  end if;
  for kind, count in
    select r.kind, r.count
    from rouse.retain_partitions(p_completed_ms, p_idle_partition_ms, p_idle_group_ms is not null, p_partitions, p_rows, p_after) r
  loop
    if kind = 'next' then
      v_next := count;
    end if;
    return next;
  end loop;
  if v_next = 0 then
    return query select r.kind, r.count from rouse.retain_keys(p_rows, 0) r where r.kind = 'dedup';
    return query select r.kind, r.count from rouse.retain_unique(p_rows, 0) r where r.kind = 'unique';
    return query select r.kind, r.count from rouse.retain_history(p_dead_ms, p_traces_ms, p_rows) r where r.kind <> 'next';
  end if;
end $$;
