-- Dead letters: list them, count them by error, delete them.

-- Lists dead letters, newest first.
-- Parameters: queue (null: any), a filter as in letter_fits, which may also have `before`, the dead letter to
--   continue before; the maximum number of rows, how many to skip.
-- Result: the dead letters, each with the list of its failed attempts. Every row has the total number of dead
--   letters that match. They are counted only up to 10,000 beyond this page, so that a list does not read all
--   dead letters.
-- Locks: none.
create or replace function rouse.dead_letters(
  p_queue text, p_where jsonb default '{}', p_limit integer default 100, p_offset integer default 0
) returns table (
  id bigint, message_id uuid, transaction_id text, trace_id text, partition_id bigint, partition text, queue text,
  consumer_group text, seq bigint, payload text, headers text, error_message text, error_code text, attempts integer,
  created_at timestamptz, failed_at timestamptz, history jsonb, total bigint
)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_counted_max constant integer := 10000;
  -- The names are looked up once, not for every dead letter. A name that does not exist matches nothing.
  v_queue integer := (select q.id from rouse.queues q where q.name = p_queue);
  v_groups integer[] := array(select g.id from rouse.groups g
    where g.name = p_where ->> 'consumerGroup' and (p_queue is null or g.queue_id = v_queue));
  v_partitions bigint[] := array(select p.id from rouse.partitions p
    where p.name = p_where ->> 'partition' and (p_queue is null or p.queue_id = v_queue));
  v_any_group constant boolean := p_where -> 'consumerGroup' is null;
  v_any_partition constant boolean := p_where -> 'partition' is null;
  v_code constant text := p_where ->> 'errorCode';
  v_message constant text := p_where ->> 'errorMessage';
  v_transaction constant text := p_where ->> 'transactionId';
  v_ids constant jsonb := p_where -> 'ids';
  v_from constant timestamptz := p_where ->> 'from';
  v_to constant timestamptz := p_where ->> 'to';
  v_before constant bigint := p_where ->> 'before';
begin
  return query
  with counted as materialized (
    select d.id from rouse.dead_letters d
    where (p_queue is null or d.queue_id = v_queue)
      and (v_any_group or d.group_id = any (v_groups)) and (v_any_partition or d.partition_id = any (v_partitions))
      and (v_code is null or d.error_code = v_code) and (v_message is null or d.error_message = v_message)
      and (v_transaction is null or coalesce(d.transaction_id, d.partition_id || '-' || d.seq) = v_transaction)
      and (v_ids is null or v_ids ? d.id::text or v_ids ? d.message_id::text)
      and (v_from is null or d.failed_at >= v_from) and (v_to is null or d.failed_at <= v_to)
      and (v_before is null or d.id < v_before)
    order by d.id desc
    limit p_offset::bigint + p_limit + v_counted_max
  ), page as (
    select c.id from counted c order by c.id desc limit p_limit offset p_offset
  )
  select d.id, d.message_id, d.transaction_id, d.trace_id, d.partition_id, rouse.shown_partition(p.name), q.name, g.name, d.seq, d.payload, d.headers,
    d.error_message, d.error_code, d.attempts, d.created_at, d.failed_at,
    rouse.attempts_of(d.partition_id, d.seq, d.group_id), (select count(*) from counted)
  from page
  join rouse.dead_letters d on d.id = page.id
  join rouse.queues q on q.id = d.queue_id
  join rouse.groups g on g.id = d.group_id
  left join rouse.partitions p on p.id = d.partition_id
  order by d.id desc;
end $$;

-- Whether a dead letter matches a filter.
-- Parameters: the dead letter; a filter with any of consumerGroup, partition, errorCode, errorMessage,
--   transactionId, ids (a list of ids of dead letters or messages, as texts), from and to (times of the
--   failure). Absent fields match everything.
-- Result: true if it matches, otherwise false or null. Locks: none.
create or replace function rouse.letter_fits(p_letter rouse.dead_letters, p_where jsonb) returns boolean
language sql stable
as $$
  select (p_where -> 'consumerGroup' is null
      or p_letter.group_id in (select g.id from rouse.groups g where g.queue_id = p_letter.queue_id and g.name = p_where ->> 'consumerGroup'))
    and (p_where -> 'partition' is null
      or p_letter.partition_id in (select p.id from rouse.partitions p where p.queue_id = p_letter.queue_id and p.name = p_where ->> 'partition'))
    and (p_where -> 'errorCode' is null or p_letter.error_code = p_where ->> 'errorCode')
    and (p_where -> 'errorMessage' is null or p_letter.error_message = p_where ->> 'errorMessage')
    and (p_where -> 'transactionId' is null
      or coalesce(p_letter.transaction_id, p_letter.partition_id || '-' || p_letter.seq) = p_where ->> 'transactionId')
    and (p_where -> 'ids' is null or p_where -> 'ids' ? p_letter.id::text or p_where -> 'ids' ? p_letter.message_id::text)
    and (p_where -> 'from' is null or p_letter.failed_at >= (p_where ->> 'from')::timestamptz)
    and (p_where -> 'to' is null or p_letter.failed_at <= (p_where ->> 'to')::timestamptz)
$$;

-- The first dead letters of a queue that match a filter, by id. The dead letters of each group are read in
-- order, and no further than needed. There is no index by queue and id, and sorting all dead letters in every
-- step would cost more the more there are.
-- Parameters: the queue's id, a filter as in letter_fits, the dead letter to continue after, the last one to
--   include, the maximum.
-- Result: their ids, in order. Locks: none.
create or replace function rouse.letters_meant(p_queue_id integer, p_where jsonb, p_after bigint, p_up_to bigint, p_limit integer)
returns bigint[]
language sql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
  select array(
    select o.id from rouse.groups g
    cross join lateral (
      select d.id from rouse.dead_letters d
      where d.queue_id = p_queue_id and d.group_id = g.id and d.id > p_after and d.id <= p_up_to and rouse.letter_fits(d, p_where)
      order by d.id limit p_limit
    ) o
    where g.queue_id = p_queue_id
    order by o.id limit p_limit)
$$;

-- The attempts at a message that did not complete, oldest first, as a list. Times are ms since 1970.
-- Parameters: the message's partition and seq, the group. Result: the list, possibly empty. Locks: none.
create or replace function rouse.attempts_of(p_partition_id bigint, p_seq bigint, p_group_id integer) returns jsonb
language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_build_object('attempt', a.attempt, 'outcome', a.outcome, 'errorCode', a.error_code,
    'errorMessage', a.error_message, 'holder', a.holder, 'deliveredAt', round(extract(epoch from a.delivered_at) * 1000),
    'endedAt', round(extract(epoch from a.ended_at) * 1000)) order by a.id), '[]')
  from rouse.attempts a
  where a.partition_id = p_partition_id and a.seq = p_seq and a.group_id = p_group_id and a.outcome <> 'redriven'
$$;

-- The errors of dead letters, most frequent first. Dead letters without an error code are grouped by their
-- error text.
-- Parameters: queue and group (null: any), the maximum number of rows.
-- Result: one row per error. Locks: none.
create or replace function rouse.dead_letter_groups(p_queue text, p_group text, p_limit integer)
returns table (
  queue text, consumer_group text, error_code text, error_message text, count bigint, first_failed_at timestamptz, last_failed_at timestamptz
)
language sql stable
as $$
  select q.name, g.name, d.error_code, (array_agg(d.error_message order by d.id desc))[1], count(*), min(d.failed_at), max(d.failed_at)
  from rouse.dead_letters d
  join rouse.queues q on q.id = d.queue_id
  join rouse.groups g on g.id = d.group_id
  where (p_queue is null or q.name = p_queue) and (p_group is null or g.name = p_group)
  group by q.name, g.name, d.error_code, case when d.error_code is null then d.error_message end
  order by count(*) desc, 1, 2, 3, 4
  limit p_limit
$$;

-- Deletes dead letters permanently, in bounded steps.
-- Parameters: queue, a filter as in letter_fits, the last dead letter to include (null: all), the maximum
--   number of dead letters.
-- Result: the number deleted, and the last dead letter to include in the next step; or RS404. Locks: the dead
--   letters.
create or replace function rouse.purge_letters(
  p_queue text, p_where jsonb, p_up_to bigint, p_limit integer, out purged bigint, out up_to bigint
)
language plpgsql
as $$
declare
  v_queue_id integer;
  v_ids bigint[];
begin
  perform rouse.raise_durability();
  select q.id into v_queue_id from rouse.queues q where q.name = p_queue;
  if not found then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  up_to := coalesce(p_up_to, (select max(o.id) from rouse.groups g cross join lateral (
      select d.id from rouse.dead_letters d where d.queue_id = v_queue_id and d.group_id = g.id order by d.id desc limit 1) o
    where g.queue_id = v_queue_id), 0);
  v_ids := rouse.letters_meant(v_queue_id, p_where, 0, up_to, p_limit);
  delete from rouse.dead_letters d where d.id = any (v_ids);
  get diagnostics purged = row_count;
end $$;
