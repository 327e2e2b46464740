-- Takes away what nobody needs any more, in bounded steps. Per partition the watermark is the lowest of every group's
-- next, every lease's first seq (expired ones too) and every redelivery's seq; without a group nothing counts as
-- consumed. First `tail` rises under the partition's lock, then the rows below it go.
-- Partitions are looked at without a lock first: one whose oldest message is too young for every limit is passed over.
-- Parameters: server-wide ms to keep consumed messages, dead letters and attempts, traces, idle partitions; after how
--   many ms unseen a group stops holding the watermark; the most partitions and rows a call; the partition to go on after.
-- Result: what went, by kind; kind `next` is the partition to go on after, 0 when the round is complete. What is not in
--   partitions goes with the call that completes the round. Kind `passed` are partitions that somebody kept too long.
-- Locks: partitions by id, no longer than v_ms_max and one partition; it waits a little for each, because on a busy queue
--   every partition is locked most of the time, by pushes and by pops that settle. Then lanes of partitions that go.
create or replace function rouse.retain(
  p_completed_ms bigint default 86400000, p_dead_ms bigint default 1209600000, p_traces_ms bigint default 604800000,
  p_idle_partition_ms bigint default 604800000, p_idle_group_ms bigint default null,
  p_partitions integer default 1000, p_rows integer default 10000, p_after bigint default 0
) returns table (kind text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := rouse.now();
  v_begun constant timestamptz := clock_timestamp();
  v_ms_max constant integer := 50;
  v_lock_ms_max constant integer := 30;
  v_id bigint;
  v record;
  v_passed bigint := 0;
  v_tail bigint;
  v_gone bigint;
  v_messages bigint := 0;
  v_looked integer := 0;
  v_next bigint := 0;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform set_config('lock_timeout', v_lock_ms_max::text, true);
  for v_id in
    select p.id
    from rouse.partitions p join rouse.queues q on q.id = p.queue_id
    where p.id > p_after and q.retention_enabled
      and exists (
        select from rouse.messages m
        where m.partition_id = p.id and m.seq <= p.tail and (m.seq < p.tail or m.created_at <= v_now - least(
          case when q.completed_retention_ms = 0 then p_completed_ms when q.completed_retention_ms > 0 then q.completed_retention_ms end,
          nullif(q.retention_ms, 0), nullif(q.wait_ms_max, 0), nullif(q.ttl_ms, 0)) * interval '1 millisecond'))
    order by p.id
    limit p_partitions
  loop
    v_looked := v_looked + 1;
    v_next := v_id;
    begin
      select p.id, p.queue_id, p.head, p.tail, q.retention_ms, q.wait_ms_max, q.ttl_ms,
        case when q.completed_retention_ms < 0 then null when q.completed_retention_ms = 0 then p_completed_ms
          else q.completed_retention_ms end as completed_ms
      into v from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = v_id for no key update of p;
    exception when lock_not_available then
      -- Somebody keeps it: the next round comes soon.
      v_passed := v_passed + 1;
      continue;
    end;
    continue when v.id is null;
    -- barrier: retain-locked
    v_tail := rouse.retention_tail(v.id, v.queue_id, v.tail, v.head, v.completed_ms, v.retention_ms,
      case when v.ttl_ms > 0 and v.wait_ms_max > 0 then least(v.ttl_ms, v.wait_ms_max) else greatest(v.ttl_ms, v.wait_ms_max) end,
      p_idle_group_ms, v_now);
    if v_tail > v.tail then
      update rouse.partitions p set tail = v_tail where p.id = v.id;
    end if;
    delete from rouse.messages m
    where m.partition_id = v.id and m.seq in (
      select x.seq from rouse.messages x
      where x.partition_id = v.id and x.seq < least(greatest(v_tail, v.tail), rouse.held_from(v.id))
      order by x.seq limit p_rows - v_messages);
    get diagnostics v_gone = row_count;
    v_messages := v_messages + v_gone;
    if v_messages >= p_rows then
      v_next := coalesce(nullif(v.id - 1, 0), -1);  -- this one may have more; 0 would mean that nobody has
      exit;
    end if;
    if clock_timestamp() > v_begun + v_ms_max * interval '1 millisecond' then
      v_looked := p_partitions;
      exit;
    end if;
  end loop;
  if v_looked < p_partitions and v_messages < p_rows then
    v_next := 0;
  end if;
  return query select 'messages', v_messages;
  return query select 'next', v_next;
  return query select 'passed', v_passed;
  if v_next = 0 then
    return query select * from rouse.retain_rest(v_now, p_dead_ms, p_traces_ms, p_idle_partition_ms, p_rows);
  end if;
end $$;

-- How far a partition's tail may rise.
-- Parameters: partition, its queue, tail and head, ms to keep consumed messages (null: for ever), ms to keep unconsumed
--   ones (0: for ever), ms after which unconsumed ones are evicted (0: never), idle group limit, the time.
-- Result: the new tail. Locks: none.
create or replace function rouse.retention_tail(
  p_id bigint, p_queue_id integer, p_tail bigint, p_head bigint, p_completed_ms bigint, p_retention_ms bigint, p_evict_ms bigint,
  p_idle_group_ms bigint, p_now timestamptz
) returns bigint
language plpgsql
as $$
declare
  v_held bigint;
  v_consumed bigint;
  v_tail bigint := p_tail;
begin
  -- In one statement: a pop or a release between two would show neither the lease nor the cursor below it.
  select min(l.next), rouse.held_from(p_id) into v_consumed, v_held
  from rouse.lanes l join rouse.groups g on g.id = l.group_id
  where l.partition_id = p_id
    and (p_idle_group_ms is null or g.last_seen_at > p_now - p_idle_group_ms * interval '1 millisecond');
  if v_consumed is not null and p_completed_ms is not null then
    v_tail := greatest(v_tail, least(v_consumed, v_held,
      rouse.seq_at(p_id, p_tail, p_head, p_now - p_completed_ms * interval '1 millisecond')));
  end if;
  if p_retention_ms > 0 then
    v_tail := greatest(v_tail, least(v_held, rouse.seq_at(p_id, p_tail, p_head, p_now - p_retention_ms * interval '1 millisecond')));
  end if;
  if p_evict_ms > 0 then
    v_tail := greatest(v_tail, least(v_held, rouse.seq_at(p_id, p_tail, p_head, p_now - p_evict_ms * interval '1 millisecond')));
  end if;
  return v_tail;
end $$;

-- The lowest seq of a partition that somebody holds or is to get again; beyond every seq where there is none.
-- Parameters: the partition. Result: a seq. Locks: none.
create or replace function rouse.held_from(p_id bigint) returns bigint
language sql stable
as $$
  select least(
    coalesce((select min(s.from_seq) from rouse.leases s where s.partition_id = p_id), 9223372036854775807),
    coalesce((select min(r.seq) from rouse.redeliveries r where r.partition_id = p_id), 9223372036854775807))
$$;
