-- works-with: 4
-- Limits of how fast a consumer group gets messages, and of how many messages of one partition it holds.

lock table rouse.queues, rouse.groups, rouse.lanes, rouse.leases in access exclusive mode;

-- Deliveries per time, per group, and per group and partition; messages held per group and partition. 0: no limit.
alter table rouse.queues
  add column rate_limit integer not null default 0,
  add column rate_per_ms bigint not null default 0,
  add column partition_rate_limit integer not null default 0,
  add column partition_rate_per_ms bigint not null default 0,
  add column partition_in_flight_max integer not null default 0;

-- Whether a pop may take the short path: no option of the queue withholds messages. One column, so that further options do
-- not lengthen it.
alter table rouse.queues add column plain boolean generated always as (
  not paused and window_ms = 0 and ttl_ms = 0 and wait_ms_max = 0 and in_flight_max = 0
  and rate_limit = 0 and partition_rate_limit = 0 and partition_in_flight_max = 0) stored;

-- The bucket of a group: when it will be full again (null: it is). A group that has used it up is blocked until it holds
-- tokens; promotion ends the block and wakes waiters.
alter table rouse.groups
  add column rate_tat timestamptz,
  add column blocked_until timestamptz;
alter table rouse.groups set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0);
create index groups_blocked on rouse.groups (blocked_until) where blocked_until is not null;

-- The same for one partition.
alter table rouse.lanes add column rate_tat timestamptz;

-- Whether a lease counts against partition_in_flight_max. A lane that is full is blocked until infinity; what ends a part of
-- such a lease opens it.
alter table rouse.leases add column lane_limited boolean not null default false;
create index leases_lane_limited on rouse.leases (partition_id, group_id) where lane_limited;
