-- Queue options: their rules, their defaults, and how they are resolved.

-- Every option with its kind, bounds and built-in default, by its name in the API.
-- Parameters: none. Result: one row per option. Locks: none.
create or replace function rouse.option_rules()
returns table (name text, kind text, least_value numeric, most_value numeric, default_value jsonb)
language sql immutable
as $$
  values
    ('leaseTime', 'integer', 1, 86400, '300'::jsonb),
    ('retryLimit', 'integer', 0, 1000, '3'),
    ('retryBackoffMs', 'ladder', 0, 604800000, '[0, 30000, 300000]'),
    ('retryDelay', 'integer', 0, 604800000, 'null'),
    ('retryBackoff', 'backoff', 1, 604800000, 'null'),
    ('deadLetterQueue', 'boolean', null, null, 'true'),
    ('dlqAfterMaxRetries', 'boolean', null, null, 'null'),
    ('deadLetterTo', 'queue', null, null, 'null'),
    ('ordering', 'keyed|partition|none', null, null, '"keyed"'),
    ('onFailure', 'hold|skip', null, null, '"hold"'),
    ('delayedProcessing', 'integer', 0, 31536000, '0'),
    ('windowBuffer', 'integer', 0, 86400, '0'),
    ('ttl', 'integer', 0, 3153600000, '0'),
    ('retentionEnabled', 'boolean', null, null, 'true'),
    ('retentionSeconds', 'integer', 0, 3153600000, '0'),
    ('completedRetentionSeconds', 'integer', -1, 3153600000, '0'),
    ('maxWaitTimeSeconds', 'integer', 0, 3153600000, '0'),
    ('maxSize', 'integer', 0, 9007199254740991, '0'),
    ('priority', 'integer', -1000000, 1000000, '0'),
    ('maxInFlight', 'integer', 0, 1000000, '0'),
    ('maxInFlightPerPartition', 'integer', 0, 1000000, '0'),
    ('rate', 'rate', 1, 1000000, 'null'),
    ('partitionRate', 'rate', 1, 1000000, 'null'),
    ('dedupWindowSeconds', 'integer', 0, 31536000, '3600'),
    ('history', 'failures|all', null, null, '"failures"'),
    ('encryptionEnabled', 'boolean', null, null, 'false')
$$;

-- Refuses an unknown option or a value of the wrong kind. The error names the option.
-- Parameters: options as the user gave them. Result: nothing. Locks: none.
create or replace function rouse.check_options(p_options jsonb) returns void
language plpgsql
as $$
declare
  v record;
begin
  if jsonb_typeof(p_options) is distinct from 'object' then
    perform rouse.raise('RS400', 'invalid_option', 'options must be an object', '{"field": "options"}');
  end if;
  for v in
    select o.key, o.value, r.kind, r.least_value, r.most_value
    from jsonb_each(p_options) o left join rouse.option_rules() r on r.name = o.key
  loop
    if v.kind is null then
      perform rouse.raise('RS400', 'unknown_option', format('there is no queue option "%s"', v.key),
        jsonb_build_object('field', v.key));
    elsif not rouse.option_fits(v.value, v.kind, v.least_value, v.most_value) then
      perform rouse.raise('RS400', 'invalid_option',
        case when v.kind = 'integer' then format('%s must be an integer from %s to %s', v.key, v.least_value, v.most_value)
             when v.kind = 'ladder' then format('%s must be a list of 1 to 50 integers from %s to %s', v.key, v.least_value, v.most_value)
             when v.kind = 'backoff' then format('%s must have type "exponential", baseMs from %s to %s, and may have factor from 1 to 100, '
               || 'maxMs from baseMs to %s, and jitter, a boolean or a number from 0 to 1', v.key, v.least_value, v.most_value, v.most_value)
             when v.kind = 'rate' then format('%s must have limit, an integer from %s to %s, and perMs, an integer from 1 to 86400000',
               v.key, v.least_value, v.most_value)
             when v.kind = 'queue' then format('%s must be the name of a queue', v.key)
             else format('%s must be %s', v.key, replace(v.kind, '|', ' or ')) end,
        jsonb_build_object('field', v.key));
    end if;
  end loop;
  if p_options ->> 'deadLetterTo' is not null then
    perform rouse.check_name('deadLetterTo', p_options ->> 'deadLetterTo');
  end if;
  if jsonb_typeof(p_options -> 'retryBackoff') = 'object' and jsonb_typeof(p_options -> 'retryBackoffMs') = 'array' then
    perform rouse.raise('RS400', 'invalid_option', 'set either retryBackoff or retryBackoffMs, not both', '{"field": "retryBackoff"}');
  end if;
end $$;

-- Whether a value has an option's kind and is within its bounds. A null resets the option to its default.
-- Parameters: value, kind and bounds from option_rules. Result: a boolean. Locks: none.
create or replace function rouse.option_fits(p_value jsonb, p_kind text, p_least numeric, p_most numeric) returns boolean
language sql immutable
as $$
  select case
    when jsonb_typeof(p_value) = 'null' then true
    when p_kind = 'boolean' then jsonb_typeof(p_value) = 'boolean'
    when p_kind = 'integer' then
      case when jsonb_typeof(p_value) = 'number'
        then (p_value #>> '{}')::numeric between p_least and p_most and (p_value #>> '{}')::numeric % 1 = 0 else false end
    when p_kind = 'number' then
      case when jsonb_typeof(p_value) = 'number' then (p_value #>> '{}')::numeric between p_least and p_most else false end
    when p_kind = 'backoff' then
      case when jsonb_typeof(p_value) = 'object' then rouse.backoff_fits(jsonb_strip_nulls(p_value), p_least, p_most) else false end
    when p_kind = 'ladder' then
      case when jsonb_typeof(p_value) = 'array'
        then jsonb_array_length(p_value) between 1 and 50
          and (select bool_and(rouse.option_fits(e, 'integer', p_least, p_most) and jsonb_typeof(e) <> 'null')
               from jsonb_array_elements(p_value) e)
        else false end
    when p_kind = 'rate' then
      case when jsonb_typeof(p_value) = 'object' then p_value - array['limit', 'perMs'] = '{}'
        and rouse.option_fits(jsonb_strip_nulls(p_value) -> 'limit', 'integer', p_least, p_most)
        and rouse.option_fits(jsonb_strip_nulls(p_value) -> 'perMs', 'integer', 1, 86400000) else false end
    when p_kind = 'queue' then jsonb_typeof(p_value) = 'string'
    else jsonb_typeof(p_value) = 'string' and p_value #>> '{}' = any (string_to_array(p_kind, '|'))
  end
$$;

-- Whether an object is a value of retryBackoff.
-- Parameters: the object, without nulls; the bounds of its delays. Result: a boolean. Locks: none.
create or replace function rouse.backoff_fits(p_value jsonb, p_least numeric, p_most numeric) returns boolean
language sql immutable
as $$
  select p_value - array['type', 'baseMs', 'factor', 'maxMs', 'jitter'] = '{}' and coalesce(p_value ->> 'type' = 'exponential', false)
    and rouse.option_fits(coalesce(p_value -> 'factor', '2'), 'number', 1, 100)
    and (rouse.option_fits(coalesce(p_value -> 'jitter', 'false'), 'boolean', null, null)
      or rouse.option_fits(p_value -> 'jitter', 'number', 0, 1))
    and case when rouse.option_fits(p_value -> 'baseMs', 'integer', p_least, p_most)
      then rouse.option_fits(coalesce(p_value -> 'maxMs', to_jsonb(p_most)), 'integer', (p_value ->> 'baseMs')::numeric, p_most)
      else false end
$$;

-- A value of retryBackoff with all its fields.
-- Parameters: the value. Result: an object; null if the value is not one. Locks: none.
create or replace function rouse.full_backoff(p_value jsonb) returns jsonb
language sql immutable
as $$
  select case when jsonb_typeof(p_value) = 'object'
    then '{"factor": 2, "maxMs": 604800000, "jitter": false}'::jsonb || jsonb_strip_nulls(p_value) end
$$;

-- All options of a queue created now: built-in defaults, then the server's, then the queue's own. The two
-- deprecated names (retryDelay, dlqAfterMaxRetries) also set the options that replaced them. Dead letters are
-- kept if either of their two names is true: existing clients send both, and a message must not be lost. With
-- retryBackoff, retryBackoffMs is null.
-- Parameters: the queue's own options. Result: a complete set. Locks: none.
create or replace function rouse.resolve_options(p_options jsonb) returns jsonb
language sql stable
as $$
  with chosen as (
    select jsonb_strip_nulls(d.options) || jsonb_strip_nulls(p_options) as o from rouse.server_defaults d
  )
  select (select jsonb_object_agg(r.name, r.default_value) from rouse.option_rules() r
          where r.name not in ('retryDelay', 'dlqAfterMaxRetries'))
    || case when o ? 'retryDelay' and not o ? 'retryBackoffMs'
         then jsonb_build_object('retryBackoffMs', jsonb_build_array(o -> 'retryDelay')) else '{}' end
    || case when o ? 'dlqAfterMaxRetries' and not o ? 'deadLetterQueue'
         then jsonb_build_object('deadLetterQueue', o -> 'dlqAfterMaxRetries') else '{}' end
    || o
    || case when o -> 'dlqAfterMaxRetries' = 'true' then '{"deadLetterQueue": true}' else '{}'::jsonb end
    || case when jsonb_typeof(o -> 'retryBackoff') = 'object'
         then jsonb_build_object('retryBackoff', rouse.full_backoff(o -> 'retryBackoff'), 'retryBackoffMs', null) else '{}' end
  from chosen
$$;

-- Whether a queue created now would be encrypted.
-- Parameters: none. Result: a boolean. Locks: none.
create or replace function rouse.encrypts_by_default() returns boolean
language sql stable
as $$
  select (rouse.resolve_options('{}') ->> 'encryptionEnabled')::boolean
$$;

-- The options of a queue. They were resolved when it was created, and only configure changes them: a change
-- of the server's defaults applies only to queues created later. A deprecated name that was set is shown
-- beside the option that replaced it.
-- Parameters: the queue. Result: a complete set. Locks: none.
create or replace function rouse.options_in_force(p_queue rouse.queues) returns jsonb
language sql stable
as $$
  select jsonb_build_object(
      'leaseTime', p_queue.lease_ms / 1000, 'retryLimit', p_queue.retry_limit,
      'retryBackoffMs', case when p_queue.retry_backoff is null then p_queue.retry_backoff_ms end, 'retryBackoff', p_queue.retry_backoff,
      'deadLetterQueue', p_queue.dead_letter, 'deadLetterTo', p_queue.dead_letter_to, 'ordering', p_queue.ordering, 'onFailure', p_queue.on_failure,
      'delayedProcessing', p_queue.delay_ms / 1000, 'windowBuffer', p_queue.window_ms / 1000, 'ttl', p_queue.ttl_ms / 1000,
      'retentionEnabled', p_queue.retention_enabled, 'retentionSeconds', p_queue.retention_ms / 1000,
      'completedRetentionSeconds', p_queue.completed_retention_ms / 1000, 'maxWaitTimeSeconds', p_queue.wait_ms_max / 1000,
      'maxSize', p_queue.size_max, 'priority', p_queue.priority, 'maxInFlight', p_queue.in_flight_max,
      'maxInFlightPerPartition', p_queue.partition_in_flight_max,
      'rate', case when p_queue.rate_limit > 0 then jsonb_build_object('limit', p_queue.rate_limit, 'perMs', p_queue.rate_per_ms) end,
      'partitionRate', case when p_queue.partition_rate_limit > 0
        then jsonb_build_object('limit', p_queue.partition_rate_limit, 'perMs', p_queue.partition_rate_per_ms) end,
      'dedupWindowSeconds', p_queue.dedup_window_ms / 1000, 'history', case when p_queue.full_history then 'all' else 'failures' end,
      'encryptionEnabled', p_queue.encryption)
    || case when p_queue.options ?| '{retryDelay,dlqAfterMaxRetries}' then (
         select jsonb_object_agg(o.key, o.value) from jsonb_each(p_queue.options) o
         where o.key in ('retryDelay', 'dlqAfterMaxRetries')) else '{}' end
$$;

-- The queue's own options after a change. A change of dead letters under one name ends what was set earlier
-- under the other. Of retryBackoff and the other two names for retry delays, the one set last counts.
-- Parameters: the queue's own options, the options to change. Result: its own options. Locks: none.
create or replace function rouse.merge_options(p_own jsonb, p_changes jsonb) returns jsonb
language sql immutable
as $$
  select jsonb_strip_nulls(p_own
    - case when p_changes ?| array['deadLetterQueue', 'dlqAfterMaxRetries']
        then array['deadLetterQueue', 'dlqAfterMaxRetries'] else '{}'::text[] end
    - case when p_changes ?| array['retryBackoffMs', 'retryDelay'] then array['retryBackoff'] else '{}'::text[] end
    - case when jsonb_typeof(p_changes -> 'retryBackoff') = 'object' then array['retryBackoffMs', 'retryDelay'] else '{}'::text[] end
    || p_changes)
$$;

-- The options of a queue after a change: an option in the change gets its new value. If the new value is
-- null, the option gets the current default. The other options stay.
-- Parameters: the queue, the options to change. Result: a complete set. Locks: none.
create or replace function rouse.options_after(p_queue rouse.queues, p_changes jsonb) returns jsonb
language sql stable
as $$
  select rouse.options_in_force(p_queue) || coalesce(jsonb_object_agg(n.name, r.options -> n.name), '{}')
  from (select rouse.resolve_options(rouse.merge_options(p_queue.options, p_changes)) as options) r,
    (select unnest(case
       when k in ('retryDelay', 'retryBackoffMs') then array['retryBackoffMs', 'retryBackoff']
       when k = 'retryBackoff' and (p_queue.retry_backoff is not null or p_changes -> k <> 'null') then array['retryBackoffMs', 'retryBackoff']
       when k = 'dlqAfterMaxRetries' then array['deadLetterQueue']
       else array[k] end) as name
     from jsonb_object_keys(p_changes) k) n
$$;
