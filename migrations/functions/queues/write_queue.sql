-- Creates a queue, or overwrites the options of an existing one whose row the caller has locked.
-- Parameters: name, namespace, task (null: unchanged), the queue's own options, whether to overwrite an
--   existing queue, the complete set of resolved options (null: the queue's own options, resolved with the
--   current defaults).
-- Result: the queue's id, or null if it exists already and p_replace is false. Locks: the queue row.
create or replace function rouse.write_queue(
  p_name text, p_namespace text, p_task text, p_options jsonb, p_replace boolean, p_in_force jsonb default null
) returns integer
language plpgsql
as $$
declare
  v jsonb := coalesce(p_in_force, rouse.resolve_options(p_options));
  v_id integer;
begin
  insert into rouse.queues as q (
    name, namespace, task, options, ordering, on_failure, lease_ms, retry_limit, retry_backoff_ms, retry_backoff,
    dead_letter, dead_letter_to, delay_ms, window_ms, ttl_ms, retention_enabled, retention_ms, completed_retention_ms, wait_ms_max, size_max,
    priority, in_flight_max, partition_in_flight_max, rate_limit, rate_per_ms, partition_rate_limit, partition_rate_per_ms, dedup_window_ms,
    full_history, encryption, created_at)
  values (
    p_name, p_namespace, p_task, p_options, v ->> 'ordering', v ->> 'onFailure', (v ->> 'leaseTime')::bigint * 1000,
    (v ->> 'retryLimit')::integer,
    case when jsonb_typeof(v -> 'retryBackoffMs') = 'array'
      then array(select e::bigint from jsonb_array_elements_text(v -> 'retryBackoffMs') with ordinality t(e, n) order by n)
      else '{0}' end,
    nullif(v -> 'retryBackoff', 'null'),
    (v ->> 'deadLetterQueue')::boolean, v ->> 'deadLetterTo', (v ->> 'delayedProcessing')::bigint * 1000, (v ->> 'windowBuffer')::bigint * 1000,
    (v ->> 'ttl')::bigint * 1000, (v ->> 'retentionEnabled')::boolean, (v ->> 'retentionSeconds')::bigint * 1000,
    (v ->> 'completedRetentionSeconds')::bigint * 1000, (v ->> 'maxWaitTimeSeconds')::bigint * 1000,
    (v ->> 'maxSize')::bigint, (v ->> 'priority')::integer, (v ->> 'maxInFlight')::integer,
    (v ->> 'maxInFlightPerPartition')::integer,
    coalesce((v #>> '{rate,limit}')::integer, 0), coalesce((v #>> '{rate,perMs}')::bigint, 0),
    coalesce((v #>> '{partitionRate,limit}')::integer, 0), coalesce((v #>> '{partitionRate,perMs}')::bigint, 0),
    (v ->> 'dedupWindowSeconds')::bigint * 1000, v ->> 'history' = 'all', (v ->> 'encryptionEnabled')::boolean, rouse.now())
  on conflict (name) do update set
    namespace = coalesce(excluded.namespace, q.namespace), task = coalesce(excluded.task, q.task),
    options = excluded.options, version = q.version + 1, ordering = excluded.ordering, on_failure = excluded.on_failure,
    lease_ms = excluded.lease_ms, retry_limit = excluded.retry_limit, retry_backoff_ms = excluded.retry_backoff_ms,
    retry_backoff = excluded.retry_backoff, dead_letter = excluded.dead_letter,
    dead_letter_to = excluded.dead_letter_to, delay_ms = excluded.delay_ms, window_ms = excluded.window_ms,
    ttl_ms = excluded.ttl_ms, retention_enabled = excluded.retention_enabled, retention_ms = excluded.retention_ms,
    completed_retention_ms = excluded.completed_retention_ms, wait_ms_max = excluded.wait_ms_max,
    size_max = excluded.size_max, size_seen = null, size_seen_at = null, priority = excluded.priority,
    in_flight_max = excluded.in_flight_max, partition_in_flight_max = excluded.partition_in_flight_max, rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms,
    partition_rate_limit = excluded.partition_rate_limit, partition_rate_per_ms = excluded.partition_rate_per_ms, dedup_window_ms = excluded.dedup_window_ms,
    full_history = excluded.full_history, encryption = excluded.encryption
    where p_replace
  returning q.id into v_id;
  return v_id;
end $$;
