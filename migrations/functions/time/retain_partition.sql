-- Deletes those messages of one partition that no longer have to be kept.
-- Parameters: the partition, ms to keep consumed messages, the groups that have stopped retaining messages
--   (see idle_groups.sql), the maximum number of rows, the time now, the time at which the step ends.
-- Result: the number of rows deleted; whether there is more to delete because the limit of rows or the time
--   was reached; whether the partition was skipped because it, its queue, or a lane with affected messages
--   was locked.
-- Locks: the partition, its queue, lanes: see retain_partitions.
create or replace function rouse.retain_partition(
  p_id bigint, p_completed_ms bigint, p_let_go integer[], p_rows integer, p_now timestamptz, p_ends timestamptz,
  out gone bigint, out is_more boolean, out passed boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_chunk_max constant integer := 2000;
  v_let_go integer[] := p_let_go;
  v record;
  v_limit record;
  v_goal bigint;
  v_from bigint;
  v_to bigint;
  v_count bigint;
begin
  gone := 0;
  is_more := false;
  passed := false;
  -- Uses a subtransaction only if it must wait: PostgreSQL caches 64 of them, too few for every partition.
  perform from rouse.partitions p where p.id = p_id for no key update skip locked;
  if not found then
    begin
      perform from rouse.partitions p where p.id = p_id for no key update;
    exception when lock_not_available then
      passed := true;
      return;
    end;
  end if;
  select p.id, p.head, p.tail, p.swept_to, p.options_until, q.id as queue_id, q.retention_enabled, q.full_history,
    least(nullif(q.retention_ms, 0), nullif(q.ttl_ms, 0), nullif(q.wait_ms_max, 0)) as evict_ms,
    case when q.completed_retention_ms = 0 then p_completed_ms when q.completed_retention_ms > 0 then q.completed_retention_ms end
      as completed_ms
  into v from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = p_id for key share of q skip locked;
  if v.id is null then
    passed := exists (select from rouse.partitions p where p.id = p_id);  -- otherwise it was deleted
    return;
  end if;
  -- barrier: retain-locked
  if cardinality(p_let_go) > 0 then
    -- Reads the groups again: a redrive or seek that held the partition before may have marked its group as
    -- in use.
    v_let_go := rouse.let_go_groups(v.queue_id);
  end if;
  if v.retention_enabled then
    v_limit := rouse.retention_limit(v.id, v.queue_id, v.tail, v.head, v.options_until, v.completed_ms, v.evict_ms, v_let_go, p_now);
  else
    select v.tail as tail, v.tail as free_to, rouse.held_from(v.id, '{}') as held_from into v_limit;
  end if;
  v_goal := greatest(v_limit.tail, v.tail);
  if v_goal > v_limit.free_to and v_goal > v.swept_to then
    -- The step would delete messages that a group has not completed. A pop that holds the lane of that group
    -- may already have read them, so the lane must be locked first.
    perform from rouse.lanes l
    where l.partition_id = v.id and (l.next < v_goal or l.group_id = any (v_let_go))
    order by l.group_id for no key update skip locked;
    get diagnostics v_count = row_count;
    if v_count = (select count(*) from rouse.lanes l where l.partition_id = v.id and (l.next < v_goal or l.group_id = any (v_let_go))) then
      -- barrier: retain-lanes-locked
      -- This must be a new statement: it then sees what pops delivered before the lanes were locked.
      v_limit := rouse.retention_limit(v.id, v.queue_id, v.tail, v.head, v.options_until, v.completed_ms, v.evict_ms, v_let_go, p_now);
      v_goal := greatest(least(v_goal, v_limit.tail), v.tail);
    else
      v_goal := least(v_goal, v_limit.free_to);
      passed := true;
    end if;
  end if;
  -- A redriven message may be leased below tail. The rows after it then stay, too.
  v_goal := least(v_goal, v_limit.held_from);
  v_from := v.swept_to;
  while v_from < v_goal loop
    if v_from < v.tail then
      -- Below tail there may be few rows over a wide range of seqs, so gaps are skipped.
      select m.seq into v_to from rouse.messages m
      where m.partition_id = v.id and m.seq >= v_from and m.seq < least(v.tail, v_goal) order by m.seq limit 1;
      v_from := coalesce(v_to, least(v.tail, v_goal));
      continue when v_to is null;
    end if;
    v_to := least(v_goal, v_from + least(v_chunk_max, p_rows - gone));
    with deleted as (
      delete from rouse.messages m where m.partition_id = v.id and m.seq >= v_from and m.seq < v_to returning m.id
    )
    select rouse.forget_ids(array_agg(d.id)) into v_count from deleted d;
    gone := gone + v_count;
    v_from := v_to;
    is_more := v_from < v_goal and (gone >= p_rows or clock_timestamp() > p_ends);
    exit when is_more;
  end loop;
  if v_from > v.swept_to then
    update rouse.partitions p set tail = greatest(p.tail, v_from), swept_to = v_from where p.id = v.id;
    delete from rouse.results r where r.partition_id = v.id and r.seq < v_from;
    if v.full_history then
      -- The others stay longer: they explain dead letters.
      delete from rouse.attempts a where a.partition_id = v.id and a.seq < v_from and a.outcome = 'completed';
    end if;
    if v.options_until > v.swept_to then
      delete from rouse.message_options o where o.partition_id = v.id and o.seq < v_from;
    end if;
    if cardinality(v_let_go) > 0 then
      delete from rouse.redeliveries r where r.partition_id = v.id and r.seq < v_from and r.group_id = any (v_let_go);
    end if;
  end if;
  -- barrier: retain-written
end $$;

-- How far a partition's tail may rise.
-- Parameters: partition, its queue, tail, head and options_until; ms to keep consumed messages (null:
--   permanently), also expired and cancelled ones, and unconsumed ones (null: permanently); the groups that have stopped retaining messages; the time.
-- Result: the new tail; the seq up to which every group has completed everything; the first seq that stays
--   because it is leased or to be redelivered. For groups that have stopped retaining messages only leases
--   count, unless all groups have stopped.
-- Locks: none.
create or replace function rouse.retention_limit(
  p_id bigint, p_queue_id integer, p_tail bigint, p_head bigint, p_options_until bigint, p_completed_ms bigint, p_evict_ms bigint,
  p_let_go integer[], p_now timestamptz, out tail bigint, out free_to bigint, out held_from bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v record;
begin
  -- This is one statement. Between two statements, a pop or a release could move a message between cursor and
  -- lease, and both statements would miss the message. A group without a lane in this partition has completed
  -- nothing.
  select min(coalesce(l.next, p_tail)) as next, min(coalesce(l.next, p_tail)) filter (where g.id <> all (p_let_go)) as held_next,
    rouse.held_from(p_id, '{}') as held, rouse.held_from(p_id, p_let_go) as held_by_others
  into v
  from rouse.groups g left join lateral (
    select o.next from rouse.lanes o where o.partition_id = p_id and o.group_id = g.id offset 0) l on true
  where g.queue_id = p_queue_id;
  free_to := least(v.next, v.held);
  held_from := case when v.held_next is null then v.held else v.held_by_others end;
  tail := p_tail;
  if v.next is not null and p_completed_ms is not null then
    tail := greatest(tail, least(coalesce(v.held_next, v.next), held_from,
      rouse.seq_at(p_id, p_tail, p_head, p_now - p_completed_ms * interval '1 millisecond')));
  end if;
  if p_options_until > tail and p_completed_ms is not null then
    tail := greatest(tail, least(held_from, rouse.ended_to(p_id, tail, p_head, p_now - p_completed_ms * interval '1 millisecond')));
  end if;
  if p_evict_ms is not null then
    tail := greatest(tail, least(held_from, rouse.seq_at(p_id, p_tail, p_head, p_now - p_evict_ms * interval '1 millisecond')));
  end if;
end $$;

-- How far a range begins with messages that had expired or were cancelled by a time, whether or not groups have
-- read them. It looks at v_rows_max messages at most.
-- Parameters: the partition, the first seq, the seq after the last one, the time. Result: a seq. Locks: none.
create or replace function rouse.ended_to(p_id bigint, p_from bigint, p_to bigint, p_time timestamptz) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_rows_max constant integer := 10000;
  v_to constant bigint := least(p_to, p_from + v_rows_max);
begin
  return coalesce(
    (select g.seq from (select generate_series(p_from, v_to - 1) as seq) g
     where not exists (select from rouse.message_options o
       where o.partition_id = p_id and o.seq = g.seq and least(o.cancelled_at, o.expires_at) <= p_time) limit 1),
    v_to);
end $$;

-- The lowest seq of a partition that is leased or to be redelivered; the maximum bigint if there is none.
-- No index has all leases by partition: ordered leases are found through their lanes, and unordered
-- ones have their own index.
-- Parameters: the partition, groups whose redeliveries do not count. Result: a seq. Locks: none.
create or replace function rouse.held_from(p_id bigint, p_let_go integer[]) returns bigint
language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
  select least(
    (select min(s.from_seq) from rouse.lanes l cross join lateral (
       select o.from_seq from rouse.leases o where o.id = l.lease_id and o.partition_id = l.partition_id offset 0) s
     where l.partition_id = p_id and l.lease_id is not null),
    (select min(s.from_seq) from rouse.leases s where s.partition_id = p_id and not s.ordered),
    (select min(r.seq) from rouse.redeliveries r where r.partition_id = p_id and r.group_id <> all (p_let_go)),
    9223372036854775807)
$$;

-- Deletes what finds messages by their ids.
-- Parameters: the stored ids of deleted messages. Result: their number. Locks: those rows.
create or replace function rouse.forget_ids(p_ids uuid[]) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  delete from rouse.message_ids i
  where i.id = any (array(select d.id from unnest(p_ids) d(id) where substr(d.id::text, 15, 1) <> '8'));
  return coalesce(cardinality(p_ids), 0);
end $$;
