-- works-with: 4
-- Messages that were cancelled before any group got them.

-- A message in the log that differs from the others. The row of a cancelled message stays in the log, because a gap would look like
-- the end of what is kept; pops skip it.
create table rouse.message_options (
  partition_id bigint not null,
  seq bigint not null,
  cancelled_at timestamptz,
  primary key (partition_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- No seq from here on has a row in message_options, so a pop that begins here need not read it.
alter table rouse.partitions add column options_until bigint not null default 0;

-- A message that was cancelled while it was scheduled.
create table rouse.cancelled (
  id uuid primary key,             -- of the message
  queue text collate "C" not null,
  partition text collate "C" not null,
  due_at timestamptz not null,
  transaction_id text,
  trace_id text,
  payload text not null,
  headers text,
  created_at timestamptz not null,
  cancelled_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index cancelled_by_queue on rouse.cancelled (queue, id);
create index cancelled_by_time on rouse.cancelled (cancelled_at);
