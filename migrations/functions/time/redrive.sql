-- Redrives dead letters: each is redelivered to its own group, at its old position in its partition, and its
-- attempts count from the start again.

-- Redrives dead letters in one call.
-- Parameters: queue; group, error code and ids of dead letters (null: any); the maximum number of dead
--   letters; whether only to count them.
-- Result: wake hints. Their count is the number of dead letters that were moved, or that would be moved.
-- Locks: as redrive_letters.
create or replace function rouse.redrive(
  p_queue text, p_group text default null, p_error_code text default null, p_ids bigint[] default null,
  p_limit integer default 1000, p_dry_run boolean default false
) returns setof rouse.wake_hint
language plpgsql
as $$
declare
  v_queue rouse.queues;
  v_ids bigint[];
begin
  perform rouse.raise_durability();
  select * into v_queue from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  perform rouse.refuse_redrive(v_queue.id, p_queue);
  v_ids := array(
    select d.id from rouse.dead_letters d join rouse.groups g on g.id = d.group_id
    where d.queue_id = v_queue.id and (p_group is null or g.name = p_group)
      and (p_error_code is null or d.error_code = p_error_code) and (p_ids is null or d.id = any (p_ids))
    order by d.id limit p_limit);
  if p_dry_run then
    return query
    select p_queue, p.name, g.name, v_queue.namespace, v_queue.task, count(*)
    from rouse.dead_letters d join rouse.groups g on g.id = d.group_id left join rouse.partitions p on p.id = d.partition_id
    where d.id = any (v_ids) group by p.name, g.name;
    return;
  end if;
  return query select * from rouse.redrive_letters(v_queue, v_ids);
end $$;

-- Refuses a redrive while a purge in steps is running, because the purge would remove the redriven messages.
-- Parameters: the queue's id and name. Result: nothing, or RS409 queue_in_use. Locks: none.
create or replace function rouse.refuse_redrive(p_queue_id integer, p_queue text) returns void
language plpgsql
as $$
begin
  if rouse.is_being_purged(p_queue_id) then
    perform rouse.raise('RS409', 'queue_in_use', format('queue "%s" is being purged: redrive its dead letters after the purge', p_queue));
  end if;
end $$;

-- Moves these dead letters back. If retention has removed a message from the log, it is restored from its
-- dead letter.
-- Parameters: the queue, ids of its dead letters. Result: wake hints, whose count is the number moved.
-- Locks: groups with SKIP LOCKED, partitions by id, lanes by (partition, group), the dead letters.
create or replace function rouse.redrive_letters(p_queue rouse.queues, p_ids bigint[])
returns setof rouse.wake_hint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_partitions constant bigint[] := array(select distinct d.partition_id from rouse.dead_letters d where d.id = any (p_ids));
  v_oldest_ms constant bigint := least(nullif(p_queue.ttl_ms, 0), nullif(p_queue.wait_ms_max, 0));
begin
  perform rouse.see_groups(array(select distinct d.group_id from rouse.dead_letters d where d.id = any (p_ids)));
  perform from rouse.partitions p where p.id = any (v_partitions) order by p.id for no key update;
  perform from rouse.lanes l
  where (l.partition_id, l.group_id) in (select d.partition_id, d.group_id from rouse.dead_letters d where d.id = any (p_ids))
  order by l.partition_id, l.group_id for no key update;
  -- barrier: redrive-locked
  if v_oldest_ms > 0 then
    -- After a seek back the cursor may be before the message of a dead letter. When the cursor reaches that
    -- message, a pop would skip it as too old. So the cursor moves past it now.
    update rouse.lanes l
    set next = rouse.seq_at(p.id, greatest(l.next, p.tail), p.head, rouse.now() - v_oldest_ms * interval '1 millisecond')
    from (
      select o.partition_id, o.group_id, max(o.seq) as seq from rouse.dead_letters o
      where o.id = any (p_ids) and o.created_at < rouse.now() - v_oldest_ms * interval '1 millisecond'
      group by o.partition_id, o.group_id
    ) d join rouse.partitions p on p.id = d.partition_id
    where l.partition_id = d.partition_id and l.group_id = d.group_id and d.seq >= greatest(l.next, p.tail);
  end if;
  -- The cursor delivers such a message. A redriven message does not expire.
  update rouse.message_options o set expires_at = null
  from rouse.dead_letters d
  join rouse.partitions p on p.id = d.partition_id
  join rouse.lanes l on l.partition_id = d.partition_id and l.group_id = d.group_id
  where d.id = any (p_ids) and p.options_until > d.seq and d.seq >= greatest(l.next, p.tail)
    and o.partition_id = d.partition_id and o.seq = d.seq and o.expires_at is not null;
  return query
  with letters as (
    delete from rouse.dead_letters d where d.id = any (p_ids)
      and exists (select from rouse.lanes l where l.partition_id = d.partition_id and l.group_id = d.group_id)
    returning d.*
  ), restored as (
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    select distinct on (d.partition_id, d.seq) d.partition_id, d.seq, d.message_id, d.created_at, d.transaction_id, d.trace_id, d.payload, d.headers
    from letters d
    on conflict on constraint messages_pkey do nothing
    returning id, partition_id, seq
  ), optioned as (
    insert into rouse.message_options (partition_id, seq, retry_limit, retry_backoff_ms)
    select distinct on (d.partition_id, d.seq) d.partition_id, d.seq, (d.options::jsonb ->> 'retryLimit')::integer,
      case when d.options::jsonb ? 'retryBackoffMs'
        then array(select e::bigint from jsonb_array_elements_text(d.options::jsonb -> 'retryBackoffMs') with ordinality t(e, n) order by n) end
    from letters d join restored r on r.partition_id = d.partition_id and r.seq = d.seq
    where d.options is not null
    on conflict on constraint message_options_pkey do nothing
  ), named as (
    insert into rouse.message_ids (id, partition_id, seq) select r.id, r.partition_id, r.seq from restored r on conflict do nothing
  ), again as (
    insert into rouse.redeliveries (partition_id, group_id, seq, attempt, alone, due_at, announced)
    select d.partition_id, d.group_id, d.seq, 0, true, rouse.now(), true
    from letters d join rouse.partitions p on p.id = d.partition_id
    join rouse.lanes l on l.partition_id = d.partition_id and l.group_id = d.group_id
    where d.seq < greatest(l.next, p.tail)  -- after a seek back, the cursor delivers the others
      -- If the cursor has delivered the message again, without order, that delivery goes on and is the only one.
      and not exists (
        select from rouse.leases s
        where s.partition_id = d.partition_id and s.group_id = d.group_id and not s.ordered
          and rouse.bits_after(s.from_seq, s.unacked, d.seq) is not null)
    on conflict on constraint redeliveries_pkey do nothing
  ), marked as (
    -- This marks the messages as redriven: they have no age limit (pop/expire_again.sql), and a release must
    -- not move the cursor back over them.
    insert into rouse.attempts (partition_id, seq, group_id, attempt, outcome, ended_at)
    select d.partition_id, d.seq, d.group_id, 0, 'redriven', rouse.now() from letters d
  ), opened as (
    update rouse.lanes l set ready = true, blocked_until = null
    where (not l.ready or l.blocked_until is not null) and (l.partition_id, l.group_id) in (select d.partition_id, d.group_id from letters d)
  ), unswept as (
    -- Retention starts its search for rows to delete at swept_to, so swept_to moves back to the redriven
    -- messages.
    update rouse.partitions p set swept_to = d.seq
    from (select o.partition_id, min(o.seq) as seq from letters o group by o.partition_id) d
    where p.id = d.partition_id and p.swept_to > d.seq
  )
  select p_queue.name, p.name, g.name, p_queue.namespace, p_queue.task, count(*)
  from letters d join rouse.partitions p on p.id = d.partition_id join rouse.groups g on g.id = d.group_id
  group by p.name, g.name;
end $$;

-- Counts the dead letters that a redrive would move.
-- Parameters: queue, a filter as in letter_fits. Result: one row per partition and group; or RS404.
-- Locks: none.
create or replace function rouse.count_letters(p_queue text, p_where jsonb)
returns table (partition text, consumer_group text, count bigint)
language plpgsql stable
as $$
declare
  v_queue_id integer;
begin
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  return query
  select rouse.shown_partition(p.name), g.name, count(*)
  from rouse.dead_letters d join rouse.groups g on g.id = d.group_id left join rouse.partitions p on p.id = d.partition_id
  where d.queue_id = v_queue_id and rouse.letter_fits(d, p_where)
  group by p.name, g.name
  order by p.name, g.name;
end $$;

-- Starts a redrive of the dead letters that exist now. Nodes run its steps; if a node dies, others continue
-- the redrive.
-- Parameters: its id, queue, a filter as in letter_fits, dead letters per second (null: unlimited).
-- Result: the redrive; or RS404. Locks: the row `redrive` of rouse.chores.
create or replace function rouse.start_redrive(p_id uuid, p_queue text, p_where jsonb, p_rate integer) returns setof rouse.redrives
language plpgsql
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_kept constant interval := interval '7 days';
  v_queue_id integer;
begin
  perform rouse.raise_durability();
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  perform rouse.refuse_redrive(v_queue_id, p_queue);
  delete from rouse.redrives r where r.state <> 'running' and r.updated_at < v_now - v_kept;
  return query
  insert into rouse.redrives as r (id, queue, criteria, rate_per_second, state, total, up_to, next_at, started_at, updated_at)
  select p_id, p_queue, p_where, p_rate, case when count(*) > 0 then 'running' else 'done' end, count(*), coalesce(max(d.id), 0),
    case when count(*) > 0 then v_now end, v_now, v_now
  from rouse.dead_letters d where d.queue_id = v_queue_id and rouse.letter_fits(d, p_where)
  returning r.*;
  update rouse.chores c set next_at = least(c.next_at, v_now) where c.name = 'redrive';
end $$;

-- Cancels a redrive. Dead letters that it has moved stay moved.
-- Parameters: its id. Result: the redrive as it is now; no row if there is none. Locks: the redrive.
create or replace function rouse.cancel_redrive(p_id uuid) returns setof rouse.redrives
language plpgsql
as $$
begin
  perform rouse.raise_durability();
  update rouse.redrives r set state = 'cancelled', next_at = null, updated_at = rouse.now() where r.id = p_id and r.state = 'running';
  return query select r.* from rouse.redrives r where r.id = p_id;
end $$;

-- Runs one step of the redrive that is due first. The first node to lock the row `redrive` of rouse.chores
-- runs the step. If the redrive has a rate, a step moves as many dead letters as the rate allows in a tenth
-- of a second, but at least one. If partitions of a redrive are locked, the redrive continues a second later,
-- so that other redrives get their turn.
-- Parameters: the node.
-- Result: wake hints; then a last row without a hint, with the ms until the next step, null if nothing is
--   left. No row if no step is due, another node runs it, or this is a copy (cluster.sql).
-- Locks: the row of rouse.chores with SKIP LOCKED, the redrive, then as redrive_letters. The step waits at
--   most 100 ms for each lock.
create or replace function rouse.redrive_step(p_holder text)
returns table (hint rouse.wake_hint, wait_ms bigint)
language plpgsql
set lock_timeout = '100ms'
as $$
#variable_conflict use_column
declare
  v_batch_max constant integer := 1000;
  v_now timestamptz;
  v rouse.redrives;
  v_queue rouse.queues;
  v_batch integer;
  v_ids bigint[];
  v_moved bigint := 0;
  v_next timestamptz;
begin
  perform rouse.raise_durability();
  perform from rouse.chores c where c.name = 'redrive' and c.next_at <= rouse.now() for no key update skip locked;
  if not found or rouse.is_copy() then
    return;
  end if;
  -- barrier: redrive-step-locked
  v_now := rouse.now();
  select r.* into v from rouse.redrives r
  where r.state = 'running' and r.next_at <= v_now order by r.next_at, r.id limit 1 for no key update;
  if found then
    v_batch := coalesce(greatest(1, least(v_batch_max, v.rate_per_second / 10)), v_batch_max);
    select q.* into v_queue from rouse.queues q where q.name = v.queue;
  end if;
  if rouse.is_being_purged(v_queue.id) then
    -- The redrive continues after the purge.
    update rouse.redrives r set next_at = v_now + interval '1 second', updated_at = v_now where r.id = v.id;
  elsif v.id is not null then
    v_ids := rouse.letters_meant(v_queue.id, v.criteria, v.position, v.up_to, v_batch);
    -- The next step is due relative to the due time of this one, not to now, so that a late step does not
    -- slow down the redrive.
    v_next := coalesce(greatest(v_now, v.next_at + v_batch * interval '1 second' / v.rate_per_second), v_now);
    begin
      for hint in
        select * from rouse.redrive_letters(v_queue, v_ids)
      loop
        v_moved := v_moved + hint.count;
        return next;
      end loop;
      update rouse.redrives r
      set moved = r.moved + v_moved, position = coalesce(v_ids[cardinality(v_ids)], r.position), updated_at = v_now,
        state = case when cardinality(v_ids) < v_batch then 'done' else r.state end,
        next_at = case when cardinality(v_ids) < v_batch then null else v_next end
      where r.id = v.id;
    exception when lock_not_available then
      update rouse.redrives r set next_at = v_now + interval '1 second' where r.id = v.id;
    end;
  end if;
  select min(r.next_at) into v_next from rouse.redrives r where r.state = 'running';
  update rouse.chores c set next_at = coalesce(v_next, 'infinity'), steps = c.steps + 1, holder = p_holder, last_at = v_now
  where c.name = 'redrive';
  hint := null;
  wait_ms := case when v_next is not null then ceil(extract(epoch from greatest(v_next, v_now) - v_now) * 1000) end;
  return next;
end $$;
