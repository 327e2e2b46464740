-- What consumers hold, what has to be delivered again, and what was given up on.

-- What one waiter holds of one lane. All lanes of one pop share the id, so that extend and release by any of
-- them covers the whole with one index.
create table rouse.leases (
  id uuid not null,
  partition_id bigint not null,
  group_id integer not null,
  from_seq bigint not null,
  to_seq bigint not null,
  unacked varbit not null,         -- bit i stands for from_seq + i; 1 = held and not acknowledged
  attempt integer not null,
  ordered boolean not null,        -- the lane's lease_id points here
  limited boolean not null,        -- counts against the queue's in_flight_max
  holder text not null,
  delivered_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (id, partition_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index leases_by_expiry on rouse.leases (expires_at);
create index leases_limited on rouse.leases (group_id) where limited;

-- One message to deliver again. Announced rows may be popped; the others wait for their due time.
create table rouse.redeliveries (
  partition_id bigint not null,
  group_id integer not null,
  seq bigint not null,
  attempt integer not null,        -- attempts charged so far
  alone boolean not null,          -- came from an expired lease: one per lease
  due_at timestamptz not null,
  announced boolean not null,
  error_code text,
  error_message text,
  primary key (partition_id, group_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index redeliveries_to_announce on rouse.redeliveries (due_at) where not announced;

-- Every attempt that did not end in completion.
create table rouse.attempts (
  id bigint generated always as identity primary key,
  partition_id bigint not null,
  seq bigint not null,
  group_id integer not null,
  attempt integer not null,
  outcome text not null,           -- failed, retry, expired, dlq
  error_code text,
  error_message text,
  holder text,
  delivered_at timestamptz,
  ended_at timestamptz not null
);
create index attempts_by_message on rouse.attempts (partition_id, seq, group_id);
create index attempts_by_end on rouse.attempts (ended_at);

-- The message itself is copied: retention may take the log away below it.
create table rouse.dead_letters (
  id bigint generated always as identity primary key,
  queue_id integer not null,
  group_id integer not null,
  partition_id bigint not null,
  seq bigint not null,
  message_id uuid not null,
  transaction_id text,
  trace_id text,
  payload text not null,
  headers text,
  attempts integer not null,
  error_code text,
  error_message text,
  created_at timestamptz not null,
  failed_at timestamptz not null
);
create index dead_letters_by_queue on rouse.dead_letters (queue_id, group_id, id);
create index dead_letters_by_failure on rouse.dead_letters (failed_at);
