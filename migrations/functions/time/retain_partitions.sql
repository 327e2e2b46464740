-- Runs a step over partitions in order of id: deletes messages, then partitions that are empty and idle.
-- Partitions are first read in chunks and without a lock, and each costs one lookup of the message at `tail`;
-- only those with something to delete are locked. Messages are deleted by ranges of seq. Deletion starts at
-- swept_to, which is below tail after a redrive. tail rises only as far as rows were deleted. So the cost of a
-- step depends on what it deletes.
-- Parameters: ms to keep consumed messages and idle partitions; whether groups may have stopped retaining
--   messages (see idle_groups.sql); the maximum number of partitions to lock and of rows to delete; the
--   partition to continue after.
-- Result: the kinds `messages`, `partitions`, `next` and `passed`, with the same meaning as in retain.
-- Locks: partitions by id, each with its queue FOR KEY SHARE (so that no group is created meanwhile), for at
--   most 50 ms plus the time for one chunk of rows. The call does not skip a locked partition at once,
--   because on a busy queue every partition is locked most of the time: it waits up to v_lock_ms_max. It
--   skips a locked queue. If the call deletes messages that a group has not completed, it locks the lanes of
--   that group with SKIP LOCKED, because a pop that holds one of them may be about to return those messages.
--   Then it locks idle partitions with SKIP LOCKED, their queues FOR SHARE, and their lanes.
create or replace function rouse.retain_partitions(
  p_completed_ms bigint, p_idle_partition_ms bigint, p_lets_go boolean, p_partitions integer, p_rows integer, p_after bigint
) returns table (kind text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_ends constant timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_lock_ms_max constant integer := 30;
  v_chunk_max constant integer := 512;
  v_looked_max constant integer := 20000;
  v_chunk integer := 8;     -- small at first: the first partition alone may use up the step
  v_looked integer := 0;
  v_locked integer := 0;
  v_let_go integer[] := '{}';
  v_found record;
  v_id bigint;
  v_next bigint := p_after;
  v_visit record;
  v_is_over boolean := false;
  v_messages bigint := 0;
  v_partitions bigint := 0;
  v_passed bigint := 0;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform set_config('lock_timeout', v_lock_ms_max::text, true);
  if p_lets_go then
    v_let_go := rouse.let_go_groups(null);
  end if;
  while not v_is_over loop
    select array_agg(c.id order by c.id) filter (where c.is_due) as due, max(c.id) as last_id, count(*) as looked,
      array_agg(c.id order by c.id) filter (where c.is_idle and (c.is_due or c.is_empty)) as idle
    into v_found
    from (
      select p.id, p.tail = p.head as is_empty,
        p.swept_to < p.tail or (q.retention_enabled and (m.created_at <= v_now - q.evict_ms * interval '1 millisecond'
          or (m.created_at <= v_now - q.completed_ms * interval '1 millisecond' and (p.tail < l.next or (p.options_until > p.tail
            and p.tail < rouse.ended_to(p.id, p.tail, p.tail + 1, v_now - q.completed_ms * interval '1 millisecond')))))) as is_due,
        q.retention_enabled and p.last_created_at <= v_now - p_idle_partition_ms * interval '1 millisecond' and not rouse.is_level(p.name) as is_idle
      from (select * from rouse.partitions o where o.id > v_next order by o.id limit v_chunk) p
      left join lateral (
        select q.retention_enabled, least(nullif(q.retention_ms, 0), nullif(q.wait_ms_max, 0), nullif(q.ttl_ms, 0)) as evict_ms,
          case when q.completed_retention_ms = 0 then p_completed_ms when q.completed_retention_ms > 0 then q.completed_retention_ms end
            as completed_ms
        from rouse.queues q where q.id = p.queue_id offset 0
      ) q on true
      left join lateral (
        select m.created_at from rouse.messages m where p.tail < p.head and m.partition_id = p.id and m.seq = p.tail limit 1 offset 0
      ) m on true
      left join lateral (
        select min(l.next) as next from rouse.lanes l
        where m.created_at <= v_now - q.completed_ms * interval '1 millisecond' and l.partition_id = p.id and l.group_id <> all (v_let_go)
        offset 0
      ) l on true
    ) c;
    foreach v_id in array coalesce(v_found.due, '{}') loop
      -- Checks the limits before the lock, because waiting for a locked partition takes time, too. Each step
      -- visits at least one partition.
      v_is_over := v_locked > 0 and (v_messages >= p_rows or v_locked >= p_partitions or clock_timestamp() > v_ends);
      exit when v_is_over;
      v_locked := v_locked + 1;
      v_visit := rouse.retain_partition(v_id, p_completed_ms, v_let_go, (p_rows - v_messages)::integer, v_now, v_ends);
      v_messages := v_messages + v_visit.gone;
      v_passed := v_passed + v_visit.passed::integer;
      if v_visit.is_more then
        v_next := coalesce(nullif(v_id - 1, 0), -1);  -- 0 would mean that the round is complete
        v_is_over := true;
        exit;
      end if;
      v_next := v_id;
    end loop;
    exit when v_is_over;
    if v_found.idle is not null then
      begin
        v_partitions := v_partitions + rouse.remove_partitions(v_found.idle, p_idle_partition_ms, v_now);
      exception when lock_not_available then
        v_passed := v_passed + 1;  -- a pop holds one of their lanes
      end;
    end if;
    if v_found.looked < v_chunk then
      v_next := 0;
      exit;
    end if;
    v_next := v_found.last_id;
    v_looked := v_looked + v_chunk;
    v_chunk := least(v_chunk * 4, v_chunk_max);
    v_is_over := v_looked >= v_looked_max or clock_timestamp() > v_ends;
  end loop;
  return query values ('messages', v_messages), ('partitions', v_partitions), ('next', v_next), ('passed', v_passed);
end $$;

-- Deletes those of the given partitions that are empty and idle and have neither keys nor dead letters
-- (a redrive needs the partition).
-- Parameters: the partitions, the ms they must have been idle, the time now. Result: the number deleted.
-- Locks: partitions by id and their queues FOR SHARE, all with SKIP LOCKED; then their lanes.
create or replace function rouse.remove_partitions(p_ids bigint[], p_idle_ms bigint, p_now timestamptz) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_ids bigint[];
begin
  v_ids := array(
    select p.id from rouse.partitions p join rouse.queues q on q.id = p.queue_id
    where p.id = any (p_ids) and p.tail = p.head and p.last_created_at <= p_now - p_idle_ms * interval '1 millisecond'
      and rouse.held_from(p.id, '{}') = 9223372036854775807 and not rouse.is_level(p.name)
      and not exists (select from rouse.messages m where m.partition_id = p.id)
      and not exists (select from rouse.dedup d where d.partition_id = p.id)
      and not exists (select from rouse.unique_keys k where k.queue_id = p.queue_id and k.partition_id = p.id)
      and not exists (select from rouse.dead_letters d where d.queue_id = p.queue_id and d.partition_id = p.id)
    order by p.id
    for update of p skip locked
    for share of q skip locked);  -- a group that is being created adds a lane to every partition it sees
  delete from rouse.lanes l where l.partition_id = any (v_ids);
  delete from rouse.partitions p where p.id = any (v_ids);
  return cardinality(v_ids);
end $$;
