-- Takes away what is no longer needed. Nodes call retention_step, which runs one bounded step of one of three kinds: partitions
-- (messages, and partitions that are empty and idle), dedup keys, history (dead letters, attempts, traces).

-- A step over partitions and, when it completes the round, a step of each other kind.
-- Parameters: server-wide ms to keep consumed messages, dead letters and attempts, traces, idle partitions; after how many ms
--   without a request a group stops holding messages (null: never); the most partitions to lock and rows to remove in a
--   call; the partition to go on after.
-- Result: what went, by kind; kind `next` is the partition to go on after, 0 when the round is complete; kind `passed` counts
--   partitions that were locked for too long.
-- Locks: as retain_partitions, retain_keys and retain_history.
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
    return query select r.kind, r.count from rouse.retain_history(p_dead_ms, p_traces_ms, p_rows) r where r.kind <> 'next';
  end if;
end $$;

-- A step over partitions in the order of their id: removes messages, then partitions that are empty and idle.
-- Partitions are first read in chunks and without a lock, by one lookup of the message at `tail` each; only those with
-- something to remove are locked. Messages go by ranges of seq from swept_to on, and tail rises no further than rows go, so
-- that a step costs what it removes.
-- Parameters: ms to keep consumed messages and idle partitions; whether groups may have been let go; the most partitions to
--   lock and rows to remove; the partition to go on after.
-- Result: kinds `messages`, `partitions`, `next` and `passed`, as retain.
-- Locks: partitions by id, each with its queue FOR KEY SHARE (no group is created meanwhile), for v_ms_max and one chunk
--   of rows at most. It waits v_lock_ms_max for a partition, because on a busy queue every partition is locked most of the
--   time; a locked queue is passed over. Where tail passes messages that a group has not completed, that group's
--   lanes with SKIP LOCKED: a pop that has one of them may be about to return those messages. Then idle partitions with
--   SKIP LOCKED, their queues FOR SHARE, and their lanes.
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
  v_chunk integer := 8;     -- small at first: the partition of the last step may use up this one, too
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
          or (m.created_at <= v_now - q.completed_ms * interval '1 millisecond' and p.tail < l.next))) as is_due,
        q.retention_enabled and p.last_created_at <= v_now - p_idle_partition_ms * interval '1 millisecond' as is_idle
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
      -- Before the lock, not after: one that cannot be locked takes time as well. Each step has one, however slow the machine.
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
        v_passed := v_passed + 1;  -- a lane of theirs is being popped
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

-- Removes what it may of one partition's messages.
-- Parameters: the partition, ms to keep consumed messages, groups that were let go, the most rows, the time now, when to end.
-- Result: how many rows went; whether there is more, because rows or time ran out; whether it was passed over, as somebody
--   had it, its queue, or a lane with messages that would go.
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
  -- A subtransaction only where it has to wait: one for every partition would be too many for PostgreSQL to remember cheaply.
  perform from rouse.partitions p where p.id = p_id for no key update skip locked;
  if not found then
    begin
      perform from rouse.partitions p where p.id = p_id for no key update;
    exception when lock_not_available then
      passed := true;
      return;
    end;
  end if;
  select p.id, p.head, p.tail, p.swept_to, q.id as queue_id, q.retention_enabled,
    least(nullif(q.retention_ms, 0), nullif(q.ttl_ms, 0), nullif(q.wait_ms_max, 0)) as evict_ms,
    case when q.completed_retention_ms = 0 then p_completed_ms when q.completed_retention_ms > 0 then q.completed_retention_ms end
      as completed_ms
  into v from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = p_id for key share of q skip locked;
  if v.id is null then
    passed := exists (select from rouse.partitions p where p.id = p_id);  -- else it was deleted
    return;
  end if;
  -- barrier: retain-locked
  if cardinality(p_let_go) > 0 then
    v_let_go := rouse.let_go_groups(v.queue_id);  -- a redrive or seek that had the partition before us brought its group back
  end if;
  if v.retention_enabled then
    v_limit := rouse.retention_limit(v.id, v.queue_id, v.tail, v.head, v.completed_ms, v.evict_ms, v_let_go, p_now);
  else
    select v.tail as tail, v.tail as free_to, rouse.held_from(v.id, '{}') as held_from into v_limit;
  end if;
  v_goal := greatest(v_limit.tail, v.tail);
  if v_goal > v_limit.free_to and v_goal > v.swept_to then
    -- Messages go that a group has not completed. A pop that has its lane may have read them already.
    perform from rouse.lanes l
    where l.partition_id = v.id and (l.next < v_goal or l.group_id = any (v_let_go))
    order by l.group_id for no key update skip locked;
    get diagnostics v_count = row_count;
    if v_count = (select count(*) from rouse.lanes l where l.partition_id = v.id and (l.next < v_goal or l.group_id = any (v_let_go))) then
      -- barrier: retain-lanes-locked
      -- A new statement: it sees what pops delivered before the lanes were ours.
      v_limit := rouse.retention_limit(v.id, v.queue_id, v.tail, v.head, v.completed_ms, v.evict_ms, v_let_go, p_now);
      v_goal := greatest(least(v_goal, v_limit.tail), v.tail);
    else
      v_goal := least(v_goal, v_limit.free_to);
      passed := true;
    end if;
  end if;
  -- Where somebody holds a message below tail (it was redriven), what lies behind it waits as well.
  v_goal := least(v_goal, v_limit.held_from);
  v_from := v.swept_to;
  while v_from < v_goal loop
    if v_from < v.tail then
      -- There may be few rows below tail, and many seqs.
      select m.seq into v_to from rouse.messages m
      where m.partition_id = v.id and m.seq >= v_from and m.seq < least(v.tail, v_goal) order by m.seq limit 1;
      v_from := coalesce(v_to, least(v.tail, v_goal));
      continue when v_to is null;
    end if;
    v_to := least(v_goal, v_from + least(v_chunk_max, p_rows - gone));
    delete from rouse.messages m where m.partition_id = v.id and m.seq >= v_from and m.seq < v_to;
    get diagnostics v_count = row_count;
    gone := gone + v_count;
    v_from := v_to;
    is_more := v_from < v_goal and (gone >= p_rows or clock_timestamp() > p_ends);
    exit when is_more;
  end loop;
  if v_from > v.swept_to then
    update rouse.partitions p set tail = greatest(p.tail, v_from), swept_to = v_from where p.id = v.id;
    if cardinality(v_let_go) > 0 then
      delete from rouse.redeliveries r where r.partition_id = v.id and r.seq < v_from and r.group_id = any (v_let_go);
    end if;
  end if;
  -- barrier: retain-written
end $$;

-- How far a partition's tail may rise.
-- Parameters: partition, its queue, tail and head; ms to keep consumed messages (null: for ever) and unconsumed ones (null: for
--   ever); groups that were let go; the time.
-- Result: the new tail; up to where no lane holds or waits for anything, of whichever group; the first seq that stays because it
--   is leased or to be delivered again. Of groups that were let go only leases hold, unless all groups were.
-- Locks: none.
create or replace function rouse.retention_limit(
  p_id bigint, p_queue_id integer, p_tail bigint, p_head bigint, p_completed_ms bigint, p_evict_ms bigint, p_let_go integer[],
  p_now timestamptz, out tail bigint, out free_to bigint, out held_from bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v record;
begin
  -- In one statement: a pop or a release between two would show neither the lease nor the cursor below it. A group without
  -- a lane here has completed nothing.
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
  if p_evict_ms is not null then
    tail := greatest(tail, least(held_from, rouse.seq_at(p_id, p_tail, p_head, p_now - p_evict_ms * interval '1 millisecond')));
  end if;
end $$;

-- The lowest seq of a partition that is leased or to be delivered again; beyond every seq where there is none. Ordered leases
-- are found by their lanes, the others by their index: leases have none by partition.
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

-- Removes those of these partitions that are empty, idle and have neither keys nor dead letters (whose way back they are).
-- Parameters: the partitions, for how many ms they must have been idle, the time now. Result: how many went.
-- Locks: partitions by id and their queues FOR SHARE, with SKIP LOCKED, then their lanes.
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
      and rouse.held_from(p.id, '{}') = 9223372036854775807
      and not exists (select from rouse.messages m where m.partition_id = p.id)
      and not exists (select from rouse.dedup d where d.partition_id = p.id)
      and not exists (select from rouse.dead_letters d where d.queue_id = p.queue_id and d.partition_id = p.id)
    order by p.id
    for update of p skip locked
    for share of q skip locked);  -- a group that is being created gives a lane to every partition it sees
  delete from rouse.lanes l where l.partition_id = any (v_ids);
  delete from rouse.partitions p where p.id = any (v_ids);
  return cardinality(v_ids);
end $$;
