-- works-with: 4
-- Options of single messages: how often and when they are tried again, when they expire, and their priority.

lock table rouse.queues, rouse.message_options, rouse.scheduled, rouse.cancelled, rouse.dead_letters in access exclusive mode;

-- Null: the option of the queue counts; the message does not expire by itself.
alter table rouse.message_options
  add column retry_limit integer,
  add column retry_backoff_ms bigint[],
  add column expires_at timestamptz;

-- The options of a message that is not in the log, as JSON text: retryLimit, retryBackoffMs (a list), ttlMs. Null: it has none.
-- Its priority is in the name of its partition.
alter table rouse.scheduled add column options text;
alter table rouse.cancelled add column options text;
alter table rouse.dead_letters add column options text;

-- Whether the queue has partitions for messages with a priority. It stays true.
alter table rouse.queues drop column plain, add column prioritized boolean not null default false;
alter table rouse.queues add column plain boolean generated always as (
  not paused and window_ms = 0 and ttl_ms = 0 and wait_ms_max = 0 and in_flight_max = 0
  and rate_limit = 0 and partition_rate_limit = 0 and partition_in_flight_max = 0 and not prioritized) stored;

-- Functions with other parameters or results now.
drop function if exists rouse.push_v2(text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[], integer);
drop function if exists rouse.push_general(text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[]);
drop function if exists rouse.push_merged(text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[]);
drop function if exists rouse.append(bigint, uuid[], text[], text[], text[], text[], text[]);
drop function if exists rouse.lock_queues(text[]);
drop function if exists rouse.transaction(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text, text[], text[],
  integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[]);
drop function if exists rouse.lane_offer(rouse.queues, integer, bigint, timestamptz);
drop function if exists rouse.first_open(bigint, bigint, bigint);
drop function if exists rouse.take_again(integer, bigint, bigint, integer, integer, boolean, bigint, bigint);
drop function if exists rouse.part_taken(bigint, bigint, bigint, bigint, boolean);
drop function if exists rouse.cancelled_count(bigint, bigint);
drop function if exists rouse.find_by_id(uuid, bigint, bigint);
drop function if exists rouse.retention_limit(bigint, integer, bigint, bigint, bigint, bigint, integer[], timestamptz);
drop function if exists rouse.end_attempts(rouse.leases, bigint[], text, text, text, bigint, timestamptz);
