-- Queues, their partitions, consumer groups, and the lanes where a group meets a partition.
-- Rows here are few and updated often: low fillfactor, eager vacuum, no index on what a push moves.

-- Server-wide defaults for queue options (ROUSE_DEFAULT_*). One row; an absent key means the built-in default.
create table rouse.server_defaults (
  only_row boolean primary key default true check (only_row),
  options jsonb not null default '{}'
);
insert into rouse.server_defaults default values;

create table rouse.queues (
  id integer generated always as identity primary key,
  name text not null unique,
  namespace text,
  task text,
  -- What the user set, by its name in the API. The columns below hold the resolved values that SQL reads.
  options jsonb not null default '{}',
  version bigint not null default 1,
  paused boolean not null default false,
  ordering text not null check (ordering in ('partition', 'none')),
  on_failure text not null check (on_failure in ('hold', 'skip')),
  lease_ms bigint not null check (lease_ms > 0),
  retry_limit integer not null check (retry_limit >= 0),
  retry_backoff_ms bigint[] not null,
  dead_letter boolean not null,
  delay_ms bigint not null check (delay_ms >= 0),
  window_ms bigint not null check (window_ms >= 0),
  ttl_ms bigint not null check (ttl_ms >= 0),
  retention_enabled boolean not null,
  retention_ms bigint not null,
  completed_retention_ms bigint not null,
  wait_ms_max bigint not null,
  size_max bigint not null check (size_max >= 0),
  priority integer not null,
  in_flight_max integer not null check (in_flight_max >= 0),
  dedup_window_ms bigint not null check (dedup_window_ms >= 0),
  encryption boolean not null,
  -- The measured size of a queue with size_max and too many partitions to count at every push.
  size_seen bigint,
  size_seen_at timestamptz,
  created_at timestamptz not null
) with (fillfactor = 70);

create index queues_by_namespace on rouse.queues (namespace, task);

create table rouse.partitions (
  id bigint generated always as identity primary key,
  queue_id integer not null,
  name text not null,
  head bigint not null default 1,  -- next seq to write
  tail bigint not null default 1,  -- first seq kept
  last_created_at timestamptz not null,
  unique (queue_id, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

create table rouse.groups (
  id integer generated always as identity primary key,
  queue_id integer not null,
  name text not null,
  subscribed_from timestamptz,     -- null: everything kept
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  unique (queue_id, name)
) with (fillfactor = 70);

create table rouse.lanes (
  partition_id bigint not null,
  group_id integer not null,
  next bigint not null,            -- first seq not yet delivered to this group
  ready boolean not null,          -- push sets, settle clears
  lease_id uuid,                   -- pop sets; ack, release, reap clear; always null where ordering is none
  blocked_until timestamptz,       -- nack and a window buffer set, promote clears
  primary key (partition_id, group_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- The pop index: only lanes that may be popped now, so blocked, leased and empty lanes cost a pop nothing.
create index lanes_to_pop on rouse.lanes (group_id, partition_id)
  where ready and lease_id is null and blocked_until is null;
create index lanes_blocked on rouse.lanes (blocked_until) where blocked_until is not null;
