-- works-with: 4
-- Keys that one message at a time may have.

lock table rouse.queues in access exclusive mode;

-- How often the queue was purged. A key that was taken before the last purge is free.
alter table rouse.queues add column purges integer not null default 0;

-- A key, and the message that holds it or has held it. Nothing writes here when that message ends: the next push
-- with the key finds out whether it is free (functions/unique/unique_state.sql).
create table rouse.unique_keys (
  queue_id integer not null,
  partition_id bigint not null,        -- the scope: 0 for the queue, -1 for its independent messages, else a partition
  key text collate "C" not null,
  message_id uuid not null,            -- as in rouse.messages or rouse.scheduled
  holder_partition bigint,             -- where the message is in the log; null: it is or was scheduled
  seq bigint,
  window_ms bigint,                    -- until when it holds the key: null until it ends, else this long
  expires_at timestamptz not null,     -- the end of that window, or infinity; -infinity: no message holds the key
  purges integer not null default 0,   -- queues.purges when it took the key
  primary key (queue_id, partition_id, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index unique_keys_by_message on rouse.unique_keys (message_id);

insert into rouse.chores (name, next_at) values ('unique', now());

-- Functions with other parameters or results now.
drop function if exists rouse.push_v2(
  text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[], text[], integer);
drop function if exists rouse.push_general(
  text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[], text[]);
drop function if exists rouse.push_merged(
  text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[], text[]);
drop function if exists rouse.push_known(
  bigint, bigint, timestamptz, bigint, text, text, uuid[], text[], text[], text[], text[], timestamptz);
drop function if exists rouse.sort_push(
  bigint[], bigint[], bigint[], bigint[], integer[], uuid[], text[], bigint[], timestamptz[], timestamptz);
drop function if exists rouse.lock_lanes(bigint[], uuid[], boolean);
drop function if exists rouse.transaction(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text, text[], text[],
  integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[], text[]);
