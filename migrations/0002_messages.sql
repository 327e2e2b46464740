-- The log, and what is on its way into it.

-- Insert only, one btree. Payload and headers are JSON text, kept as the producer wrote them.
create table rouse.messages (
  partition_id bigint not null,
  seq bigint not null,
  id uuid not null,
  created_at timestamptz not null,
  transaction_id text,             -- only where the producer gave one
  trace_id text,
  payload text not null,
  headers text,
  primary key (partition_id, seq)
);

-- A key seen before its expiry is a duplicate of the message it names; seq is null while that one is scheduled.
create table rouse.dedup (
  partition_id bigint not null,
  key text not null,
  message_id uuid not null,
  seq bigint,
  expires_at timestamptz not null,
  primary key (partition_id, key)
) with (fillfactor = 80);
create index dedup_by_expiry on rouse.dedup using brin (expires_at) with (pages_per_range = 32, autosummarize = on);

-- Messages not yet in the log: delayed pushes, and all that SQL producers enqueue. Named, not referenced:
-- a producer's open transaction must not hold a lock on its queue or partition.
create table rouse.scheduled (
  id bigint generated always as identity primary key,
  queue text not null,
  partition text not null,
  due_at timestamptz not null,
  message_id uuid not null,
  transaction_id text,
  trace_id text,
  payload text not null,
  headers text,
  origin text not null check (origin in ('sql', 'broker')),
  created_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
create index scheduled_by_due on rouse.scheduled (due_at);
create index scheduled_by_partition on rouse.scheduled (queue, partition, due_at, id);

-- Lanes freed by ack_in inside a user's transaction, to be opened after its commit.
create table rouse.freed (
  id bigint generated always as identity primary key,
  partition_id bigint not null,
  group_id integer not null,
  lease_id uuid not null
);
