-- Lists of messages. A page costs what it returns, and at most a fixed number of rows and partitions that it
-- passes over: it may be short, or empty, and still not be the last.

-- A page of the messages of a queue: those in the log, then the scheduled ones, then those cancelled while they
-- were scheduled. All of a page is read in one snapshot, so a message that is promoted meanwhile is in it once.
-- Parameters: queue; partition (null: all); the group whose statuses are shown; a status, or null for all; the
--   error of messages that are retrying or dead (null: any); the times from and before which the messages were
--   created (null: any); where to continue (null: from the start), as the last row of the last page says; the
--   maximum number of messages.
-- Result: the messages; then a last row without an id, whose `after` is where to continue (null at the end).
--   RS404 if there is no such queue.
-- Locks: none.
create or replace function rouse.list_messages_v2(
  p_queue text, p_partition text, p_group text, p_status text, p_error_code text, p_from timestamptz, p_before timestamptz,
  p_after text[], p_limit integer
) returns table (
  partition_id bigint, seq bigint, partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text, status text, due_at timestamptz, after text[]
)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_partitions_max constant integer := 500;
  v_rows_max constant integer := 4000;
  v_queue_id integer;
  v_group_id integer;
  v_places constant text[] := case
    when p_status is null then '{log,scheduled,cancelled}'
    when p_status = 'scheduled' then '{scheduled}'
    when p_status = 'cancelled' then '{log,cancelled}'
    else '{log}' end;
  v_begun boolean := p_after is null;
  v_place text;
  v_after text[];
  v_left integer := p_limit;
begin
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  select g.id into v_group_id from rouse.groups g where g.queue_id = v_queue_id and g.name = p_group;
  foreach v_place in array v_places loop
    continue when not v_begun and v_place <> p_after[1];
    v_after := case when not v_begun then p_after end;
    v_begun := true;
    if v_left = 0 then
      after := coalesce(v_after, array[v_place]);
      return next;
      return;
    end if;
    for partition_id, seq, partition, message_id, created_at, transaction_id, trace_id, payload, headers, status, due_at, after in
      select l.partition_id, l.seq, l.partition, l.message_id, l.created_at, l.transaction_id, l.trace_id, l.payload, l.headers, l.status,
        null::timestamptz, array['log', l.partition, l.seq::text]
      from rouse.list_log(v_queue_id, p_partition, v_group_id, p_status, p_error_code, p_from, p_before,
        coalesce(v_after[2], ''), coalesce(v_after[3], '0')::bigint, v_left, v_partitions_max, v_rows_max) l
      where v_place = 'log'
      union all
      select null, null, w.partition, w.message_id, w.created_at, w.transaction_id, w.trace_id, w.payload, w.headers, v_place,
        w.due_at, array[v_place, w.partition, (extract(epoch from w.due_at) * 1000000)::bigint::text, w.position]
      from rouse.list_scheduled(p_queue, p_partition, v_place, coalesce(v_after[2], ''), coalesce(v_after[3], '0')::bigint, v_after[4], v_left) w
      where v_place <> 'log'
    loop
      if message_id is null then
        exit when partition is null;
        after := case when seq is null then v_after else after end;
        return next;
        return;
      end if;
      partition := rouse.shown_partition(partition);
      v_after := after;
      after := null;
      v_left := v_left - 1;
      return next;
    end loop;
    -- barrier: list-place-read
    if v_place <> 'log' and v_left = 0 then
      partition_id := null; seq := null; message_id := null;
      after := v_after;
      return next;
      return;
    end if;
  end loop;
  partition_id := null; seq := null; message_id := null; after := null;
  return next;
end $$;

-- A page of a queue's log, by partition name and seq.
-- Parameters: the queue's id; partition (null: all); the id of the group whose statuses are shown (null: no such
--   group); a status, or null for all; the error of messages that are retrying or dead (null: any); the times
--   from and before which the messages were created (null: any); the partition and seq to continue after; the
--   maximum number of messages, and of partitions and rows to pass over.
-- Result: the messages, with the stored name of the partition; then a last row without an id, with the partition
--   to continue in (null at the end) and the seq to continue after (null: that of the last message). A message below the tail of its partition is listed only if the
--   group still has it: leased, to be redelivered, or, if this status is asked for, dead.
-- Locks: none.
create or replace function rouse.list_log(
  p_queue_id integer, p_partition text, p_group_id integer, p_status text, p_error_code text, p_from timestamptz, p_before timestamptz,
  p_after_partition text, p_after_seq bigint, p_limit integer, p_partitions integer, p_rows integer
) returns table (
  partition_id bigint, seq bigint, partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text, status text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_sort = off  -- the index returns a page of a partition in order, whatever size the planner assumes
as $$
#variable_conflict use_column
declare
  v_cursor refcursor;
  v_lane record;
  v_from bigint;
  v_to bigint;
  v_at bigint;
  v_end bigint;          -- the page looks at messages below this seq
  v_next bigint;
  v_seqs bigint[];       -- the seqs that may match, if they are not all of a range
  v_held bigint[];
  v_left integer := p_limit;
  v_rows integer := p_rows;
  v_looked integer := 0;
  v_count integer;
begin
  -- One row is fetched at a time, because the page may end in the first partition.
  if p_partition is null then
    open v_cursor for select p.* from rouse.partitions p
      where p.queue_id = p_queue_id and p.name >= p_after_partition order by p.name;
  else
    open v_cursor for select p.* from rouse.partitions p
      where p.queue_id = p_queue_id and p.name = p_partition and p.name >= p_after_partition;
  end if;
  loop
    fetch v_cursor into v_lane;
    exit when not found;
    v_from := case when v_lane.name = p_after_partition then p_after_seq + 1 else 1 end;
    if v_looked = p_partitions or v_left = 0 or v_rows <= 0 then
      partition := v_lane.name;
      seq := v_from - 1;
      return next;
      return;
    end if;
    v_looked := v_looked + 1;
    v_to := v_lane.head;
    if p_from > v_lane.last_created_at then
      v_from := v_to;
    elsif p_from is not null then
      -- Messages below the tail may be older than the first that is found.
      v_at := rouse.seq_at(v_lane.id, v_lane.tail, v_lane.head, p_from);
      v_from := case when v_at > v_lane.tail then greatest(v_from, v_at) else v_from end;
    end if;
    if p_before is not null then
      v_to := rouse.seq_at(v_lane.id, v_lane.tail, v_lane.head, p_before);
    end if;
    select l.next into v_next from rouse.lanes l where l.partition_id = v_lane.id and l.group_id = p_group_id;
    v_next := coalesce(v_next, 1);
    while v_from < v_to loop
      v_end := v_to;
      v_seqs := null;
      v_held := null;
      v_count := case when p_error_code is null then least(v_left, v_rows) else v_rows end;
      if p_status = 'pending' then
        v_from := greatest(v_from, v_next, v_lane.tail);
      elsif p_status = 'completed' then
        v_from := greatest(v_from, v_lane.tail);
        v_to := least(v_to, v_next);
      elsif p_status is not null or v_from < v_lane.tail then
        select s.seqs, s.reach into v_seqs, v_at
        from rouse.seqs_with_status(v_lane.id, p_group_id, p_status, p_error_code, v_from,
          case when p_status is null then v_lane.tail else v_to end, v_count) s;
        -- Without a status, the next round goes on at the tail.
        v_end := coalesce(v_at + 1, case when p_status is null then least(v_lane.tail, v_to) else v_to end);
        if cardinality(v_seqs) > v_left then
          v_seqs := v_seqs[:v_left];
          v_end := v_seqs[v_left] + 1;
        end if;
        v_rows := v_rows - case when v_at is null then cardinality(v_seqs) else v_count end;
      end if;
      exit when v_from >= v_to;
      if v_seqs is null then
        -- From the tail on, the log has no gaps.
        v_end := least(v_to, v_from + case when p_status is null then v_left else v_rows end);
        v_rows := v_rows - case when p_status is null then 0 else (v_end - v_from)::integer end;
      end if;
      v_held := case when v_from < v_next and (v_seqs is null or cardinality(v_seqs) > 0) then array(
        select h.seq from rouse.leases_of_lane(v_lane.id, p_group_id) s, unnest(rouse.held_seqs(s.from_seq, s.unacked)) h(seq)
        where s.to_seq >= v_from and s.from_seq < v_end and h.seq >= v_from and h.seq < v_end) end;
      if v_seqs is null then
        return query
        select v_lane.id, m.seq, v_lane.name, rouse.message_id(m.id, v_lane.id, m.seq), m.created_at, m.transaction_id, m.trace_id,
          m.payload, m.headers, s.status
        from rouse.messages m
        cross join lateral (select rouse.status_in_lane(p_group_id, v_next, v_lane.id, m.seq, m.seq = any (v_held)) as status) s
        where m.partition_id = v_lane.id and m.seq >= v_from and m.seq < v_end and (p_status is null or s.status = p_status)
        order by m.seq
        limit v_left;
      else
        return query
        select v_lane.id, m.seq, v_lane.name, rouse.message_id(m.id, v_lane.id, m.seq), m.created_at, m.transaction_id, m.trace_id,
          m.payload, m.headers, s.status
        from unnest(v_seqs) c(seq)
        cross join lateral (
          (select o.seq, o.id, o.created_at, o.transaction_id, o.trace_id, o.payload, o.headers
           from rouse.messages o where o.partition_id = v_lane.id and o.seq = c.seq)
          union all
          -- Dead letters outlive the log.
          (select d.seq, d.message_id, d.created_at, d.transaction_id, d.trace_id, d.payload, d.headers
           from rouse.dead_letters d where p_status = 'dead' and d.partition_id = v_lane.id and d.seq = c.seq and d.group_id = p_group_id)
          limit 1
        ) m
        cross join lateral (select rouse.status_in_lane(p_group_id, v_next, v_lane.id, m.seq, m.seq = any (v_held)) as status) s
        where s.status = p_status or p_status is null and s.status in ('leased', 'retrying');
      end if;
      get diagnostics v_count = row_count;
      v_left := v_left - v_count;
      if v_left = 0 and v_seqs is null and p_status is not null then
        partition := v_lane.name;
        return next;
        return;
      end if;
      v_from := v_end;
      exit when v_left = 0 or v_rows <= 0;
    end loop;
    if v_from < v_to then
      partition_id := null; message_id := null;
      partition := v_lane.name;
      seq := v_from - 1;
      return next;
      return;
    end if;
  end loop;
  partition_id := null; message_id := null; partition := null; seq := null;
  return next;
end $$;

-- The seqs of a partition that may have a status which few messages have, in order.
-- Parameters: the partition; the group (null: no such group); retrying, leased, dead or cancelled (null: the first
--   two); the error of those that are retrying or dead (null: any); the first seq, and the one to end before; the
--   maximum number of seqs to look at.
-- Result: the seqs; and the last that was looked at, or null if there are no more. Locks: none.
create or replace function rouse.seqs_with_status(
  p_partition_id bigint, p_group_id integer, p_status text, p_error_code text, p_from bigint, p_to bigint, p_limit integer,
  out seqs bigint[], out reach bigint
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  select coalesce(array_agg(c.seq order by c.seq) filter (where p_error_code is null or c.error_code = p_error_code), '{}'),
    case when count(*) = p_limit then max(c.seq) end
  into seqs, reach
  from (
    select u.seq, max(u.error_code) as error_code
    from (
      (select r.seq, r.error_code from rouse.redeliveries r
       where coalesce(p_status, 'retrying') = 'retrying'
         and r.partition_id = p_partition_id and r.group_id = p_group_id and r.seq >= p_from and r.seq < p_to
       order by r.seq limit p_limit)
      union all
      (select d.seq, max(d.error_code) from rouse.dead_letters d
       where p_status = 'dead'
         and d.partition_id = p_partition_id and d.group_id = p_group_id and d.seq >= p_from and d.seq < p_to
       group by d.seq order by d.seq limit p_limit)
      union all
      (select h.seq, null from rouse.leases_of_lane(p_partition_id, p_group_id) s, unnest(rouse.held_seqs(s.from_seq, s.unacked)) h(seq)
       where coalesce(p_status, 'leased') = 'leased' and h.seq >= p_from and h.seq < p_to
       order by h.seq limit p_limit)
      union all
      (select o.seq, null from rouse.message_options o
       where p_status = 'cancelled'
         and o.partition_id = p_partition_id and o.seq >= p_from and o.seq < p_to and o.cancelled_at is not null
       order by o.seq limit p_limit)
    ) u
    group by u.seq order by u.seq limit p_limit
  ) c;
end $$;

-- Messages of a queue that are not in the log: scheduled ones, or those that were cancelled while they were
-- scheduled. By partition and due time.
-- Parameters: queue; partition (null: all); scheduled or cancelled; the partition, the due time in microseconds
--   since 1970 and the position to continue after (null: from the start); the maximum number of messages.
-- Result: the messages, with the stored name of the partition and the position. Locks: none.
create or replace function rouse.list_scheduled(
  p_queue text, p_partition text, p_place text, p_after_partition text, p_after_micros bigint, p_after text, p_limit integer
) returns table (
  partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text, payload text, headers text,
  due_at timestamptz, "position" text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_due constant timestamptz := case when p_after is null or p_after_partition < p_partition then '-infinity'
    else timestamptz 'epoch' + p_after_micros * interval '1 microsecond' end;
begin
  -- One of the two branches is empty.
  if p_place = 'cancelled' then
    return query
    (select c.partition, c.id, c.created_at, c.transaction_id, c.trace_id, c.payload, c.headers, c.due_at, c.id::text
     from rouse.cancelled c
     where p_partition is null and c.queue = p_queue and (c.partition, c.due_at, c.id) > (p_after_partition, v_due, coalesce(p_after, '00000000-0000-0000-0000-000000000000')::uuid)
     order by c.partition, c.due_at, c.id limit p_limit)
    union all
    (select c.partition, c.id, c.created_at, c.transaction_id, c.trace_id, c.payload, c.headers, c.due_at, c.id::text
     from rouse.cancelled c
     where p_after_partition <= p_partition and c.queue = p_queue and c.partition = p_partition
       and (c.due_at, c.id) > (v_due, coalesce(p_after, '00000000-0000-0000-0000-000000000000')::uuid)
     order by c.due_at, c.id limit p_limit);
  else
    return query
    (select s.partition, s.message_id, s.created_at, s.transaction_id, s.trace_id, s.payload, s.headers, s.due_at, s.id::text
     from rouse.scheduled s
     where p_partition is null and s.queue = p_queue and (s.partition, s.due_at, s.id) > (p_after_partition, v_due, coalesce(p_after, '0')::bigint)
     order by s.partition, s.due_at, s.id limit p_limit)
    union all
    (select s.partition, s.message_id, s.created_at, s.transaction_id, s.trace_id, s.payload, s.headers, s.due_at, s.id::text
     from rouse.scheduled s
     where p_after_partition <= p_partition and s.queue = p_queue and s.partition = p_partition
       and (s.due_at, s.id) > (v_due, coalesce(p_after, '0')::bigint)
     order by s.due_at, s.id limit p_limit);
  end if;
end $$;

-- A page of the log, for nodes of the previous release.
-- Parameters: as list_log, but the queue and group by name; the id of the partition to continue in.
-- Result: the messages; then a last row without a seq, with the partition to continue in (null at the end).
--   RS404 if there is no such queue. Locks: none.
create or replace function rouse.list_messages(
  p_queue text, p_partition text, p_group text, p_status text, p_after_partition bigint, p_after_seq bigint, p_limit integer,
  p_partitions integer default 1000
) returns table (
  partition_id bigint, seq bigint, partition text, message_id uuid, created_at timestamptz, transaction_id text, trace_id text,
  payload text, headers text, status text
)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_rows constant integer := 2147483647;
  v_queue_id integer;
  v_group_id integer;
begin
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  select g.id into v_group_id from rouse.groups g where g.queue_id = v_queue_id and g.name = p_group;
  return query
  select case when l.message_id is null then (select p.id from rouse.partitions p where p.queue_id = v_queue_id and p.name = l.partition)
      else l.partition_id end,
    case when l.message_id is not null then l.seq end,
    rouse.shown_partition(l.partition), l.message_id, l.created_at, l.transaction_id, l.trace_id, l.payload, l.headers, l.status
  from rouse.list_log(v_queue_id, p_partition, v_group_id, p_status, null, null, null,
    coalesce((select p.name from rouse.partitions p where p.id = p_after_partition), ''), p_after_seq, p_limit, p_partitions, v_rows) l;
end $$;
