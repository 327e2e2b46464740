-- Options of single messages. A message in the log has a row in message_options only if it has options. All
-- such rows have a seq below partitions.options_until, so a pop of later messages does not read the table.
--
-- The options of a call are JSON texts, one per message: retryLimit, retryBackoffMs (a list), ttlMs; null for a
-- message without options. The priority of a message is in the name of its partition.

-- Stores the options of messages in the log.
-- Parameters: per message its partition, which the caller has locked; its seq; the time from which its ttlMs
--   counts; its options. Result: nothing. Locks: none beyond the partitions.
create or replace function rouse.store_options(
  p_partition_ids bigint[], p_seqs bigint[], p_due_at timestamptz[], p_options text[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  with stored as (
    insert into rouse.message_options (partition_id, seq, retry_limit, retry_backoff_ms, expires_at)
    select i.partition_id, i.seq, (i.options ->> 'retryLimit')::integer,
      case when jsonb_typeof(i.options -> 'retryBackoffMs') = 'array'
        then array(select e::bigint from jsonb_array_elements_text(i.options -> 'retryBackoffMs') with ordinality t(e, n) order by n) end,
      i.due_at + (i.options ->> 'ttlMs')::bigint * interval '1 millisecond'
    from (
      select m.partition_id, m.seq, m.due_at, m.options::jsonb as options
      from unnest(p_partition_ids, p_seqs, p_due_at, p_options) m(partition_id, seq, due_at, options) where m.options is not null
    ) i
    where i.options ?| array['retryLimit', 'retryBackoffMs', 'ttlMs']
    returning partition_id, seq
  ), lasts as (
    select s.partition_id, max(s.seq) as seq from stored s group by s.partition_id
  )
  update rouse.partitions p set options_until = greatest(p.options_until, l.seq + 1) from lasts l where p.id = l.partition_id;
end $$;

-- The options of a message in the log that its dead letter keeps: not its ttlMs, because a redriven message has
-- no age limit.
-- Parameters: its row of message_options, or null. Result: JSON text, null if it has none. Locks: none.
create or replace function rouse.options_text(p rouse.message_options) returns text
language sql immutable
as $$
  select nullif(jsonb_strip_nulls(jsonb_build_object('retryLimit', p.retry_limit, 'retryBackoffMs', p.retry_backoff_ms)), '{}')::text
$$;

-- The options of a single message, as operators see them.
-- Parameters: its partition's name; its options as JSON text, and when it is due; or its row of message_options.
-- Result: an object: priority, retryLimit, retryBackoffMs, expiresAt in ms since 1970; null where the queue
--   decides.
-- Locks: none.
create or replace function rouse.shown_options(
  p_partition text, p_options text, p_due_at timestamptz, p_stored rouse.message_options default null
) returns jsonb
language sql stable
as $$
  select jsonb_build_object('priority', rouse.priority_of(p_partition),
    'retryLimit', coalesce(o.options -> 'retryLimit', to_jsonb(p_stored.retry_limit)),
    'retryBackoffMs', coalesce(o.options -> 'retryBackoffMs', to_jsonb(p_stored.retry_backoff_ms)),
    'expiresAt', floor(extract(epoch from coalesce(p_due_at + (o.options ->> 'ttlMs')::bigint * interval '1 millisecond',
      p_stored.expires_at)) * 1000))
  from (select p_options::jsonb as options) o
$$;
