-- Moves scheduled messages into the log, by partition and in order of (due time, id), for at most v_ms_max.
-- Any node may call it at any time; row locks prevent conflicts. It does not wait for locks: it skips locked
-- partitions and queues and returns their names, and promote_partition waits for those. From a backlog it
-- takes the oldest and the newest rows, so that after a burst in one queue, messages of other queues that
-- fall due later wait for at most one step.
-- Parameters: the maximum number of rows.
-- Result: one row per partition, whose hint names the partition. The outcome is `promoted` with the number of
--   messages added, `locked`, or `failed` with the reason. A row with outcome `more` follows if the limit or
--   the time ended the step.
-- Locks: queues of missing partitions, partitions by id with SKIP LOCKED, their scheduled rows and lanes.
create or replace function rouse.promote_scheduled(p_limit integer)
returns table (outcome text, hint rouse.wake_hint, reason text)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set lock_timeout = '10ms'
as $$
declare
  v_begun constant timestamptz := clock_timestamp();
  v_ms_max constant integer := 50;
  v_passes_max constant integer := 4;
  v_each_end constant integer := greatest(p_limit / 2, 1);
  v_now constant timestamptz := rouse.now();
  v_left bigint := p_limit;
  v_due record;
  v_target record;
  v_count bigint;
  v_queue text;
  v_vain record;
  v_done_queues text[] := '{}';
  v_done_partitions text[] := '{}';
  v_passed_queues text[] := '{}';      -- locked partitions, which this step does not try again
  v_passed_partitions text[] := '{}';
  v_more boolean := false;
  v_is_any_passed boolean;
  v_is_over boolean := false;
begin
  perform rouse.raise_durability();
  for v_pass in 1..v_passes_max loop
    select array_agg(d.queue) as queues, array_agg(d.partition) as partitions, array_agg(d.rows) as rows, sum(d.rows) as total into v_due
    from (
      select s.queue, s.partition, count(*) as rows
      from (
        (select x.id, x.queue, x.partition from rouse.scheduled x
         where x.due_at <= v_now and (x.queue, x.partition) not in (
           select e.queue, e.partition from unnest(v_passed_queues, v_passed_partitions) e(queue, partition))
         order by x.due_at limit v_each_end)
        union
        (select x.id, x.queue, x.partition from rouse.scheduled x
         where x.due_at <= v_now and (x.queue, x.partition) not in (
           select e.queue, e.partition from unnest(v_passed_queues, v_passed_partitions) e(queue, partition))
         order by x.due_at desc limit v_each_end)
      ) s
      group by s.queue, s.partition
    ) d;
    exit when v_due.queues is null;
    v_more := v_due.total >= v_each_end;
    -- If a queue is locked, only its own missing partitions are skipped.
    for v_queue in
      select distinct d.queue from unnest(v_due.queues, v_due.partitions) d(queue, partition)
      left join rouse.queues q on q.name = d.queue
      left join lateral (select o.id from rouse.partitions o where o.queue_id = q.id and o.name = d.partition offset 0) p on true
      where p.id is null order by 1
    loop
      begin
        select array_agg(d.queue) as queues, array_agg(d.partition) as partitions, coalesce(sum(d.rows), 0) as rows into v_vain
        from unnest(v_due.queues, v_due.partitions, v_due.rows) d(queue, partition, rows)
        where d.queue = v_queue and not rouse.is_due_for_promotion(d.queue, d.partition, p_limit, v_now);
        v_done_queues := v_done_queues || v_vain.queues;
        v_done_partitions := v_done_partitions || v_vain.partitions;
        v_left := v_left - v_vain.rows;
        perform rouse.create_targets(array_agg(d.queue), array_agg(d.partition))
        from unnest(v_due.queues, v_due.partitions) d(queue, partition)
        where d.queue = v_queue and d.partition <> all (coalesce(v_vain.partitions, '{}'))
        having count(*) > 0;
      exception when lock_not_available or deadlock_detected or sqlstate 'RS001' then
        null;
      end;
    end loop;
    -- barrier: promote-resolved
    for v_target in
      -- Looks up the ids first, one by one. A join may read all partitions of a queue for each id if queues
      -- have few partitions on average.
      select p.id, p.name, t.queue, t.rows, t.namespace, t.task
      from (
        select i.id, d.queue, d.rows, q.namespace, q.task
        from unnest(v_due.queues, v_due.partitions, v_due.rows) d(queue, partition, rows)
        join rouse.queues q on q.name = d.queue
        cross join lateral (select o.id from rouse.partitions o where o.queue_id = q.id and o.name = d.partition offset 0) i
        offset 0
      ) t
      join rouse.partitions p on p.id = t.id
      order by p.id
      for no key update of p skip locked
    loop
      -- barrier: promote-locked
      begin
        v_count := rouse.promote_rows(v_target.id, v_target.queue, v_target.name, least(v_left, v_target.rows), v_now);
        outcome := 'promoted';
        reason := null;
      exception
        when lock_not_available or deadlock_detected or sqlstate 'RS001' then
          continue;
        when others then
          -- A partition that fails must not block the others.
          v_count := 0;
          outcome := 'failed';
          reason := sqlstate || ': ' || sqlerrm;
      end;
      if v_count > 0 or outcome = 'failed' then
        hint := row(v_target.queue, v_target.name, null, v_target.namespace, v_target.task, v_count)::rouse.wake_hint;
        return next;
      end if;
      v_done_queues := v_done_queues || v_target.queue;
      v_done_partitions := v_done_partitions || v_target.name;
      v_left := v_left - v_target.rows;
      v_is_over := v_left <= 0 or clock_timestamp() > v_begun + v_ms_max * interval '1 millisecond';
      exit when v_is_over;
    end loop;
    v_is_over := v_is_over or clock_timestamp() > v_begun + v_ms_max * interval '1 millisecond';
    select v_passed_queues || array_agg(d.queue), v_passed_partitions || array_agg(d.partition), count(*) > 0
    into v_passed_queues, v_passed_partitions, v_is_any_passed
    from unnest(v_due.queues, v_due.partitions) d(queue, partition)
    left join rouse.queues q on q.name = d.queue
    left join lateral (select o.id from rouse.partitions o where o.queue_id = q.id and o.name = d.partition offset 0) p on true
    where (d.queue, d.partition) not in (select e.queue, e.partition from unnest(v_done_queues, v_done_partitions) e(queue, partition))
      and (p.id is null or p.id < v_target.id or not v_is_over);
    v_more := v_more or v_is_over;
    -- Rows of locked partitions may have used up the limit, so the next pass looks for other rows.
    exit when v_is_over or not (v_more and v_is_any_passed);
  end loop;
  return query
  select 'locked', row(e.queue, e.partition, null, null, null, 0)::rouse.wake_hint, null::text
  from unnest(v_passed_queues, v_passed_partitions) e(queue, partition);
  -- If nothing moved, an immediate retry would not help.
  if v_more and v_left < p_limit then
    return query select 'more', null::rouse.wake_hint, null::text;
  end if;
end $$;

-- Moves scheduled messages of one partition into the log. It waits for the partition's lock, because a busy
-- partition is locked most of the time.
-- Parameters: queue, partition, the maximum number of rows, how long to wait in ms.
-- Result: as promote_scheduled; 55P03 if the lock was not free within that time.
-- Locks: the queue if the partition is missing or a message has a unique key, the partition, its scheduled rows,
--   unique keys and lanes.
create or replace function rouse.promote_partition(p_queue text, p_partition text, p_limit integer, p_lock_ms integer)
returns table (outcome text, hint rouse.wake_hint, reason text)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v record;
begin
  perform rouse.raise_durability();
  perform set_config('lock_timeout', p_lock_ms::text, true);
  -- A unique key needs the queue, which is locked before the partition.
  if rouse.has_unique_due(p_queue, p_partition, p_limit, rouse.now()) then
    perform from rouse.queues q where q.name = p_queue for share;
  end if;
  for v_try in 1..2 loop
    select p.id, q.namespace, q.task into v
    from rouse.queues q join rouse.partitions p on p.queue_id = q.id
    where q.name = p_queue and p.name = p_partition
    for no key update of p;
    exit when found or v_try = 2 or not rouse.is_due_for_promotion(p_queue, p_partition, p_limit, rouse.now());
    perform rouse.create_targets(array[p_queue], array[p_partition]);
  end loop;
  if v.id is null then
    return;
  end if;
  -- barrier: promote-partition-locked
  hint := row(p_queue, p_partition, null, v.namespace, v.task,
    rouse.promote_rows(v.id, p_queue, p_partition, p_limit, rouse.now()))::rouse.wake_hint;
  outcome := 'promoted';
  return next;
end $$;

-- Whether anything is due for a partition that does not exist. First deletes messages that were scheduled for
-- a deleted queue: they must not create the queue again.
-- Parameters: queue, partition, the maximum number of rows to delete, the time.
-- Result: a boolean; also false if rows to delete may be left. Locks: the rows that it deletes.
create or replace function rouse.is_due_for_promotion(p_queue text, p_partition text, p_limit integer, p_now timestamptz) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_gone bigint;
begin
  if not exists (select from rouse.removals r where r.queue = p_queue and r.kind = 'queue' and r.phase = 'scheduled') then
    return true;
  end if;
  delete from rouse.scheduled s where s.id = any (array(
    select x.id from rouse.scheduled x
    where x.queue = p_queue and x.partition = p_partition and x.due_at <= p_now
      and rouse.is_due_in_vain(x.queue, x.origin, x.created_at, x.xmin)
    order by x.due_at, x.id limit p_limit));
  get diagnostics v_gone = row_count;
  return v_gone < p_limit
    and exists (select from rouse.scheduled x where x.queue = p_queue and x.partition = p_partition and x.due_at <= p_now);
end $$;

-- Moves the due rows of a partition that the caller has locked. A new statement reads them under the lock, so
-- that two concurrent promotions never mix their messages in a partition.
-- Parameters: the partition's id, its queue and name, the maximum number of rows, the time.
-- Result: the number of messages added to the log. Locks: the scheduled rows, the lanes that are not ready.
create or replace function rouse.promote_rows(p_id bigint, p_queue text, p_partition text, p_limit bigint, p_now timestamptz) returns bigint
language plpgsql
-- With sorts off the planner must use the index by partition. With the index by due time it would read all
-- due rows of other partitions, too.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off
as $$
declare
  v record;
begin
  with taken as (
    delete from rouse.scheduled s
    where s.id = any (array(
      select x.id from rouse.scheduled x
      where x.queue = p_queue and x.partition = p_partition and x.due_at <= p_now
      order by x.due_at, x.id
      limit p_limit
      for update skip locked))  -- a call that cancels a message holds its row
    returning s.*, rouse.is_due_in_vain(s.queue, s.origin, s.created_at, s.xmin) as in_vain
  ), forgotten as (
    delete from rouse.dedup d using taken t
    where t.in_vain and d.partition_id = p_id and d.key = t.transaction_id and d.message_id = t.message_id
  )
  select array_agg(t.message_id order by t.due_at, t.id) as ids, array_agg(t.transaction_id order by t.due_at, t.id) as keys,
    array_agg(t.trace_id order by t.due_at, t.id) as traces, array_agg(t.payload order by t.due_at, t.id) as payloads,
    array_agg(t.headers order by t.due_at, t.id) as headers, array_agg(t.origin order by t.due_at, t.id) as origins,
    array_agg(t.due_at order by t.due_at, t.id) as due_at,
    case when count(t.options) > 0 then array_agg(t.options order by t.due_at, t.id) end as options, count(*) as total
  into v from taken t where not t.in_vain;  -- in_vain: its queue is being purged or was deleted
  -- barrier: promote-taken
  if v.total = 0 then
    return 0;
  end if;
  return rouse.append(p_id, v.ids, v.keys, v.traces, v.payloads, v.headers, v.origins, v.due_at, v.options);
end $$;

-- Appends promoted messages to one partition. Dedupe and unique keys of SQL producers are checked here. Those of
-- messages from nodes were checked when they were scheduled.
-- Parameters: a locked partition; per message its id, key, trace id, payload, headers, origin, due time and
--   options (null: no message has any).
-- Result: the number added. Locks: as sort_promoted, its lanes that are not ready.
create or replace function rouse.append(
  p_partition_id bigint, p_ids uuid[], p_keys text[], p_traces text[], p_payloads text[], p_headers text[], p_origins text[],
  p_due_at timestamptz[], p_options text[]
) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now timestamptz;
  v_first bigint;
  v_added bigint;
  v_window_ms bigint;
  v_unique record;
begin
  if p_options is not null and 'sql' = any (p_origins) and rouse.has_unique(p_options) then
    v_unique := rouse.sort_promoted(p_partition_id, p_ids, p_keys, p_payloads, p_headers, p_origins, p_due_at, p_options, rouse.now());
    select array_agg(p_ids[a.n] order by a.n), array_agg(p_keys[a.n] order by a.n), array_agg(p_traces[a.n] order by a.n),
      array_agg(v_unique.payloads[a.n] order by a.n), array_agg(v_unique.headers[a.n] order by a.n),
      array_agg(p_origins[a.n] order by a.n), array_agg(p_due_at[a.n] order by a.n), array_agg(p_options[a.n] order by a.n)
    into p_ids, p_keys, p_traces, p_payloads, p_headers, p_origins, p_due_at, p_options
    from unnest(v_unique.added) a(n);
  end if;
  select q.dedup_window_ms into v_window_ms
  from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = p_partition_id;
  select p.head, greatest(rouse.now(), p.last_created_at) into v_first, v_now from rouse.partitions p where p.id = p_partition_id;
  insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
  select p_partition_id, v_first + row_number() over (order by m.n) - 1, m.id, v_now, m.key, m.trace_id, m.payload, m.headers
  from (
    select i.*, row_number() over (partition by i.key, i.key is null or i.origin = 'broker' order by i.n) as nth
    from rows from (unnest(p_ids), unnest(p_keys), unnest(p_traces), unnest(p_payloads), unnest(p_headers), unnest(p_origins))
      with ordinality i(id, key, trace_id, payload, headers, origin, n)
  ) m
  left join rouse.dedup d on d.partition_id = p_partition_id and d.key = m.key and d.expires_at > v_now and m.origin = 'sql'
    and v_window_ms > 0
    and not exists (  -- the original was purged
      select from rouse.partitions p
      left join rouse.removals r on r.queue_id = p.queue_id and r.kind = 'purge' and r.phase in ('scheduled', 'tails')
      where p.id = d.partition_id and (d.seq < p.keys_from or (r.id is not null and rouse.is_key_purged(r, d))))
  where d.key is null and (m.key is null or m.nth = 1 or m.origin = 'broker' or v_window_ms = 0);
  get diagnostics v_added = row_count;
  -- Duplicates do not change last_created_at: otherwise a window buffer would wait although nothing was
  -- added.
  if v_added > 0 then
    update rouse.partitions p set head = p.head + v_added, last_created_at = v_now where p.id = p_partition_id;
  end if;
  insert into rouse.message_ids (id, partition_id, seq)
  select m.id, m.partition_id, m.seq from rouse.messages m
  where m.partition_id = p_partition_id and m.seq >= v_first order by m.id
  on conflict do nothing;
  if p_options is not null then
    perform rouse.store_options(array_agg(m.partition_id), array_agg(m.seq), array_agg(i.due_at), array_agg(i.options))
    from unnest(p_ids, p_due_at, p_options) i(id, due_at, options)
    join rouse.messages m on m.partition_id = p_partition_id and m.seq >= v_first and m.id = i.id
    where i.options is not null;
  end if;
  if v_window_ms > 0 then
    insert into rouse.dedup as d (partition_id, key, message_id, seq, expires_at)
    -- One row per key: if the window of a key ended while its message was scheduled, the batch may contain
    -- the key twice.
    select distinct on (m.transaction_id) p_partition_id, m.transaction_id, m.id, m.seq, v_now + v_window_ms * interval '1 millisecond'
    from rouse.messages m
    where m.partition_id = p_partition_id and m.seq >= v_first and m.transaction_id is not null
    order by m.transaction_id, m.seq desc
    on conflict on constraint dedup_pkey do update
    set message_id = excluded.message_id, seq = excluded.seq, expires_at = greatest(d.expires_at, excluded.expires_at);
  end if;
  perform rouse.wake_lanes(array[p_partition_id]);
  return v_added;
end $$;
