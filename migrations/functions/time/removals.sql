-- Deletes what operators purged or deleted, in steps that nodes run one after the other.
--
-- A removal goes through phases; it begins with the first that it needs:
--   scheduled   scheduled and cancelled messages and their keys (only if there are too many for the operator's call)
--   tails       a purge in steps: raises the `tail` of each partition past everything pushed before the call
--   partitions  rows: for a purge, messages and keys below `keys_from`; for a queue, the contents of its
--               partitions, then the partitions; for a group, its lanes and redeliveries
--   letters     dead letters of a deleted queue or group
-- A locked partition is skipped; a phase is done after a round that skipped none.

-- Starts a removal. A second purge of a queue replaces the first.
-- Parameters: kind, the queue's name and id, the groups that are deleted, the first phase. Result: nothing.
-- Locks: the removal that it replaces, then the row `removal` of rouse.chores. Steps hold both only briefly.
create or replace function rouse.begin_removal(
  p_kind text, p_queue text, p_queue_id integer, p_group_ids integer[], p_phase text
) returns void
language plpgsql
as $$
declare
  v_now constant timestamptz := rouse.now();
begin
  insert into rouse.removals as r (kind, queue, queue_id, group_ids, ordered, requested_at, oldest_xid, phase, next_at)
  select p_kind, p_queue, q.id, p_group_ids, q.ordering = 'partition', v_now, pg_snapshot_xmin(pg_current_snapshot()), p_phase, v_now
  from rouse.queues q where q.id = p_queue_id
  on conflict (queue_id) where kind = 'purge' do update
  set ordered = excluded.ordered, requested_at = excluded.requested_at, oldest_xid = excluded.oldest_xid, phase = excluded.phase, next_at = excluded.next_at,
    position = '', key_position = null, passed = 0;
  update rouse.chores c set next_at = least(c.next_at, v_now) where c.name = 'removal';
end $$;

-- Runs one step of the removal that is due first. The first node to lock the row `removal` of rouse.chores
-- runs the step. The pause after a step is as long as the step took.
-- Parameters: the node.
-- Result: one row: a wake hint if the step opened lanes that may have messages, and the ms until the next
--   step, null if nothing is left. No row if no step is due or another node runs it.
-- Locks: the row of rouse.chores with SKIP LOCKED, the removal; then one partition after the other, each with
--   its lanes and leases, until v_ms_max is over. The step waits at most v_lock_ms_max for each lock.
create or replace function rouse.removal_step(p_holder text)
returns table (hint rouse.wake_hint, wait_ms bigint)
language plpgsql
as $$
declare
  v_ms_max constant integer := 50;
  v_lock_ms_max constant integer := 30;
  v_begun constant timestamptz := clock_timestamp();
  v_now timestamptz;
  v rouse.removals;
  v_next timestamptz;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform set_config('lock_timeout', v_lock_ms_max::text, true);
  perform from rouse.chores c where c.name = 'removal' and c.next_at <= rouse.now() for no key update skip locked;
  if not found then
    return;
  end if;
  -- barrier: removal-step-locked
  v_now := rouse.now();
  select r.* into v from rouse.removals r
  where r.next_at <= v_now order by r.next_at, r.id limit 1 for no key update skip locked;
  if found then
    if v.kind = 'purge' and v.phase = 'tails' then
      select q.name, null, null, q.namespace, q.task, null into hint from rouse.queues q where q.id = v.queue_id;
    end if;
    loop
      v := rouse.remove_some(v);
      exit when v.phase = 'done' or v.next_at > v_now or clock_timestamp() > v_begun + v_ms_max * interval '1 millisecond';
    end loop;
    if v.phase = 'done' then
      delete from rouse.removals r where r.id = v.id;
    else
      update rouse.removals r
      set phase = v.phase, position = v.position, key_position = v.key_position, passed = v.passed,
        next_at = greatest(v.next_at, rouse.now() + (clock_timestamp() - v_begun))
      where r.id = v.id;
    end if;
  end if;
  -- barrier: removal-step-written
  select min(r.next_at) into v_next from rouse.removals r;
  update rouse.chores c set next_at = coalesce(v_next, 'infinity'), steps = c.steps + 1, holder = p_holder, last_at = rouse.now()
  where c.name = 'removal';
  wait_ms := case when v_next is not null then ceil(1000 * extract(epoch from greatest(v_next, rouse.now()) - rouse.now())) end;
  return next;
end $$;

-- Runs the smallest unit of a removal: removes some rows of one kind, or of one partition.
-- Parameters: the removal. Result: the updated removal, in phase `done` if nothing is left.
-- Locks: as removal_step.
create or replace function rouse.remove_some(p rouse.removals) returns rouse.removals
language plpgsql
as $$
declare
  v_rows_max constant integer := 1000;
  v_again_after constant interval := interval '1 second';
  v record;
  v_done boolean;
begin
  if p.phase = 'scheduled' then
    begin
      if rouse.remove_scheduled(p, v_rows_max) < v_rows_max then
        p.phase := case when p.kind = 'purge' then 'tails' else 'partitions' end;
      end if;
    exception when lock_not_available then
      p.next_at := rouse.now() + v_again_after;
    end;
    return p;
  elsif p.phase = 'letters' then
    if rouse.remove_letters(p, v_rows_max) < v_rows_max then
      p.phase := 'done';
    end if;
    return p;
  end if;

  -- Partitions are visited by name, because there is no index by queue and id.
  select t.id, t.name into v from rouse.partitions t
  where t.queue_id = p.queue_id and t.name > p.position order by t.name limit 1;
  if not found then
    p.position := '';
    if p.passed > 0 then
      p.passed := 0;
      p.next_at := rouse.now() + v_again_after;
    elsif p.phase = 'tails' then
      p.phase := 'partitions';
    else
      p.phase := case when p.kind = 'purge' then 'done' else 'letters' end;
    end if;
    return p;
  end if;
  begin
    if p.phase = 'tails' then
      perform rouse.purge_partition(v.id, p.requested_at);
      v_done := true;
    elsif p.kind = 'purge' then
      select s.done, s.key_position into v_done, p.key_position from rouse.sweep_partition(v.id, p, v_rows_max) s;
    elsif p.kind = 'queue' then
      v_done := rouse.remove_partition(v.id, p, v_rows_max);
    else
      v_done := rouse.remove_lane(v.id, p.group_ids[1], p.ordered, v_rows_max);
    end if;
  exception when lock_not_available then
    p.passed := p.passed + 1;
    p.key_position := null;
    v_done := true;
  end;
  if v_done then
    p.position := v.name;
  end if;
  return p;
end $$;

-- Deletes scheduled messages of a removal, and those that were cancelled, with their dedupe keys.
-- Parameters: the removal, the maximum number of rows of each kind. Result: the number deleted of the kind that had
--   more. Locks: those rows.
create or replace function rouse.remove_scheduled(p rouse.removals, p_rows integer) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  return greatest(
    rouse.delete_cancelled(p.queue_id, array(
      select c.id from rouse.cancelled c where c.queue = p.queue and c.cancelled_at <= p.requested_at
      order by c.partition, c.due_at, c.id limit p_rows)),
    rouse.delete_scheduled(p.queue_id, array(
      select s.id from rouse.scheduled s
      where s.queue = p.queue and rouse.is_removed(p, s.origin, s.created_at, s.xmin)
      order by s.partition, s.due_at limit p_rows)));
end $$;

-- Purges one partition of everything pushed up to a time. A lease that also holds later messages keeps those.
-- Parameters: the partition, the time. Result: nothing.
-- Locks: the partition, its lanes by group, leases by id. If a consumer's transaction holds a lease, the call
--   raises lock_not_available and changes nothing.
create or replace function rouse.purge_partition(p_id bigint, p_time timestamptz) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v rouse.partitions;
  v_to bigint;
  v_lease_ids uuid[];
  v_lease rouse.leases;
  v_bits varbit;
begin
  select p.* into v from rouse.partitions p where p.id = p_id for no key update;
  perform from rouse.queues q where q.id = v.queue_id;
  if not found then
    return;
  end if;
  perform from rouse.lanes l where l.partition_id = p_id order by l.group_id for no key update;
  -- barrier: purge-partition-locked
  v_to := rouse.purged_to(v, p_time);
  -- Lanes name their ordered leases.
  v_lease_ids := array(select s.id from rouse.leases s where s.partition_id = p_id and not s.ordered order by s.id);
  perform pg_advisory_xact_lock(k.key) from (select hashtextextended(i::text, 0) as key from unnest(v_lease_ids) i order by 1) k;
  v_lease_ids := v_lease_ids || array(select l.lease_id from rouse.lanes l where l.partition_id = p_id and l.lease_id is not null);
  for v_lease in
    select s.* from rouse.leases s
    where s.id = any (v_lease_ids) and s.partition_id = p_id and s.from_seq < v_to order by s.id for update
  loop
    v_bits := case when v_lease.to_seq >= v_to then substring(v_lease.unacked from (v_to - v_lease.from_seq + 1)::integer) end;
    if bit_count(v_bits) > 0 then
      update rouse.leases s set from_seq = v_to, unacked = v_bits where s.id = v_lease.id and s.partition_id = p_id;
    else
      delete from rouse.leases s where s.id = v_lease.id and s.partition_id = p_id;
      update rouse.lanes l set lease_id = null where l.partition_id = p_id and l.lease_id = v_lease.id;
    end if;
  end loop;
  delete from rouse.redeliveries r where r.partition_id = p_id and r.seq < v_to;
  -- The reason for a block may be gone: the next pop checks the lane again and blocks it if needed.
  update rouse.lanes l set blocked_until = null, ready = v_to < v.head
  where l.partition_id = p_id and (l.blocked_until is not null or (l.ready and v_to = v.head));
  update rouse.partitions p set tail = greatest(p.tail, v_to), keys_from = greatest(p.keys_from, v_to) where p.id = p_id;
end $$;

-- Deletes the rows of messages that a purge removed, then their dedupe keys. A dead letter that was redriven
-- after the purge is at its old position again, below `tail`, and stays.
-- Parameters: the partition; the removal, which has the key to continue after (null: messages are deleted
--   first); the maximum number of rows.
-- Result: whether nothing is left, and the key to continue after.
-- Locks: the partition, while messages are deleted.
create or replace function rouse.sweep_partition(
  p_id bigint, p rouse.removals, p_rows integer, out done boolean, out key_position text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_below bigint;
  v_held bigint[];
  v_gone bigint;
  v_seqs bigint[];
  v_keys text[];
begin
  done := false;
  select t.keys_from into v_below from rouse.partitions t where t.id = p_id;
  if p.key_position is null and exists (select from rouse.messages m where m.partition_id = p_id and m.seq < v_below) then
    -- Redrives take the same lock: a redrive may rely on a row that would be deleted here.
    perform from rouse.partitions t where t.id = p_id for no key update;
    -- barrier: sweep-locked
    -- This is one statement. Between two statements, a pop could turn a redelivery into a lease, and both
    -- statements would miss the message.
    v_held := array(
      select r.seq from rouse.redeliveries r where r.partition_id = p_id and r.seq < v_below
      union all
      select unnest(rouse.held_seqs(s.from_seq, s.unacked)) from rouse.lanes l join rouse.leases s on s.id = l.lease_id
      where l.partition_id = p_id and s.partition_id = p_id and s.from_seq < v_below
      union all
      select unnest(rouse.held_seqs(s.from_seq, s.unacked)) from rouse.leases s
      where not s.ordered and s.partition_id = p_id and s.from_seq < v_below);
    with deleted as (
      delete from rouse.messages m where m.partition_id = p_id and m.seq = any (array(
        select x.seq from rouse.messages x
        where x.partition_id = p_id and x.seq < v_below and x.seq <> all (v_held) order by x.seq limit p_rows))
      returning m.id, m.seq
    )
    select rouse.forget_ids(array_agg(d.id)), array_agg(d.seq) into v_gone, v_seqs from deleted d;
    delete from rouse.results r where r.partition_id = p_id and r.seq = any (v_seqs);
    if v_gone = p_rows then
      return;
    end if;
  end if;
  delete from rouse.message_options o where o.partition_id = p_id and o.seq < v_below;
  v_keys := array(
    select d.key from rouse.dedup d where d.partition_id = p_id and d.key > coalesce(p.key_position, '') order by d.key limit p_rows);
  delete from rouse.dedup d where d.partition_id = p_id and d.key = any (v_keys) and d.seq < v_below;
  done := cardinality(v_keys) < p_rows;
  key_position := case when not done then v_keys[p_rows] end;
end $$;

-- Deletes the contents of a partition of a deleted queue and, when they are gone, the partition with its
-- lanes.
-- Parameters: the partition, the removal, the maximum number of rows of each kind.
-- Result: whether the partition is gone.
-- Locks: the partition, its lanes by group, leases.
create or replace function rouse.remove_partition(p_id bigint, p rouse.removals, p_rows integer) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_gone bigint;
begin
  -- A push that waits for the partition finds that it is gone, and creates the queue again.
  perform from rouse.partitions t where t.id = p_id for update;
  with deleted as (
    delete from rouse.messages m where m.partition_id = p_id and m.seq = any (array(
      select x.seq from rouse.messages x where x.partition_id = p_id order by x.seq limit p_rows))
    returning m.id
  )
  select rouse.forget_ids(array_agg(d.id)) into v_gone from deleted d;
  if v_gone < p_rows then
    delete from rouse.dedup d where d.partition_id = p_id and d.key = any (array(
      select x.key from rouse.dedup x where x.partition_id = p_id limit p_rows));
    get diagnostics v_gone = row_count;
  end if;
  if v_gone < p_rows then
    delete from rouse.message_options o where o.partition_id = p_id and o.seq = any (array(
      select x.seq from rouse.message_options x where x.partition_id = p_id limit p_rows));
    get diagnostics v_gone = row_count;
  end if;
  if v_gone < p_rows then
    delete from rouse.results r where r.partition_id = p_id and r.seq = any (array(
      select x.seq from rouse.results x where x.partition_id = p_id limit p_rows));
    get diagnostics v_gone = row_count;
  end if;
  if v_gone < p_rows then
    delete from rouse.attempts a where a.id = any (array(
      select x.id from rouse.attempts x where x.partition_id = p_id limit p_rows));
    get diagnostics v_gone = row_count;
  end if;
  if v_gone < p_rows then
    delete from rouse.traces t where t.id = any (array(
      select x.id from rouse.traces x where x.partition_id = p_id limit p_rows));
    get diagnostics v_gone = row_count;
  end if;
  if v_gone = p_rows then
    return false;
  end if;
  for i in 1..cardinality(p.group_ids) loop
    if not rouse.remove_lane(p_id, p.group_ids[i], p.ordered, p_rows) then
      return false;
    end if;
  end loop;
  delete from rouse.partitions t where t.id = p_id;
  return true;
end $$;

-- Deletes the lane of a deleted group on a partition, with its redeliveries. Also deletes leases that a pop
-- in progress created after the group was deleted.
-- Parameters: the partition, the group, whether all partitions of the queue are ordered (then the row of the
--   lane holds the id of its lease), the maximum number of redeliveries.
-- Result: whether the lane is gone.
-- Locks: the lane, its leases. If a consumer's transaction holds a lease, the call raises lock_not_available.
create or replace function rouse.remove_lane(p_id bigint, p_group_id integer, p_ordered boolean, p_rows integer) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_lease_id uuid;
  v_gone bigint;
begin
  select l.lease_id into v_lease_id from rouse.lanes l where l.partition_id = p_id and l.group_id = p_group_id for update;
  -- barrier: remove-lane-locked
  if v_lease_id is not null then
    delete from rouse.leases s where s.id = v_lease_id and s.partition_id = p_id;
  elsif not p_ordered then
    delete from rouse.leases s where s.partition_id = p_id and s.group_id = p_group_id and not s.ordered;
  end if;
  delete from rouse.redeliveries r where r.partition_id = p_id and r.group_id = p_group_id and r.seq = any (array(
    select x.seq from rouse.redeliveries x where x.partition_id = p_id and x.group_id = p_group_id order by x.seq limit p_rows));
  get diagnostics v_gone = row_count;
  if v_gone = p_rows then
    return false;
  end if;
  delete from rouse.lanes l where l.partition_id = p_id and l.group_id = p_group_id;
  return true;
end $$;

-- Deletes dead letters of a deleted queue or group.
-- Parameters: the removal, the maximum number of rows. Result: the number deleted. Locks: those rows.
create or replace function rouse.remove_letters(p rouse.removals, p_rows integer) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_gone bigint;
begin
  delete from rouse.dead_letters d where d.id = any (array(
    select x.id from rouse.dead_letters x where x.queue_id = p.queue_id and x.group_id = any (p.group_ids) limit p_rows));
  get diagnostics v_gone = row_count;
  return v_gone;
end $$;
