-- The timeline of a message: events from its consumers, and its failed attempts.

-- Adds an event.
-- Parameters: partition and transaction id of the message, the group that reports the event (or null), the
--   names by which list_traces finds the event, the kind of event, its data as JSON text.
-- Result: the event's id, or null if there is no such partition. Locks: none.
create or replace function rouse.add_trace(
  p_partition_id bigint, p_transaction_id text, p_group text, p_names text[], p_event_type text, p_data text
) returns bigint
language sql
as $$
  insert into rouse.traces (partition_id, transaction_id, consumer_group, names, event_type, data, created_at)
  select p.id, p_transaction_id, p_group, p_names, p_event_type, p_data, rouse.now()
  from rouse.partitions p where p.id = p_partition_id
  returning id
$$;

-- Events, newest first: those of one message, or those that have a given name, of all messages.
-- Parameters: partition and transaction id, or a name; the event to continue before (null: the newest); the
--   maximum.
-- Result: the events. Locks: none.
create or replace function rouse.list_traces(p_partition_id bigint, p_transaction_id text, p_name text, p_before bigint, p_limit integer)
returns table (
  id bigint, queue text, partition text, partition_id bigint, transaction_id text, consumer_group text, names text[], event_type text,
  data text, created_at timestamptz
)
language sql stable
as $$
  select t.id, q.name, rouse.shown_partition(p.name), t.partition_id, t.transaction_id, t.consumer_group, t.names, t.event_type, t.data, t.created_at
  from rouse.traces t
  join rouse.partitions p on p.id = t.partition_id
  join rouse.queues q on q.id = p.queue_id
  where (p_name is null or t.names @> array[p_name])
    and (p_partition_id is null or t.partition_id = p_partition_id and t.transaction_id = p_transaction_id)
    and (p_before is null or t.id < p_before)
  order by t.id desc
  limit p_limit
$$;

-- The failed attempts at a message, of all groups, as events.
-- Parameters: partition and transaction id. Result: as list_traces, without ids. Locks: none.
create or replace function rouse.attempt_traces(p_partition_id bigint, p_transaction_id text)
returns table (consumer_group text, event_type text, data text, created_at timestamptz)
language sql stable
as $$
  select g.name, 'attempt', jsonb_build_object('attempt', a.attempt, 'outcome', a.outcome, 'errorCode', a.error_code,
    'errorMessage', a.error_message, 'holder', a.holder)::text, a.ended_at
  from rouse.attempts a join rouse.groups g on g.id = a.group_id
  where a.partition_id = p_partition_id and a.seq = rouse.seq_of(p_partition_id, p_transaction_id) and a.outcome <> 'redriven'
  order by a.id
$$;

-- The names of events, ordered by their latest event, newest first.
-- Parameters: the maximum. Result: one row per name. Locks: none.
create or replace function rouse.trace_names(p_limit integer)
returns table (name text, events bigint, last_at timestamptz)
language sql stable
as $$
  select n.name, count(*), max(n.created_at)
  from (select unnest(t.names) as name, t.created_at from rouse.traces t) n
  group by n.name order by max(n.created_at) desc, n.name limit p_limit
$$;
