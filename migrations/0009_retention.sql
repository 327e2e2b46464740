-- works-with: 1
-- Retention whose steps cost what they remove, and groups that nobody uses any more.

-- Every row below this seq is gone; rows from here to tail are still to be removed. Retention raises it, a redrive that puts
-- a message back below tail lowers it. Without it each look for the first row would walk over all that was removed and
-- not vacuumed yet.
alter table rouse.partitions add column swept_to bigint not null default 1;

-- Unordered leases are not named by their lane, so retention finds them by partition.
create index leases_unordered on rouse.leases (partition_id) where not ordered;

-- Dedup keys are swept by page (functions/retain_keys.sql): once vacuumed space is used again, every range of the BRIN
-- index covers all times.
drop index rouse.dedup_by_expiry;

alter table rouse.chores
  add column gone bigint not null default 0,     -- what this round has removed so far
  add column rest_ms bigint not null default 0,  -- how long it rested after the last round
  add column turns integer not null default 0;   -- steps in a row that the partition at `position` has taken
insert into rouse.chores (name, next_at) values ('dedup', now()), ('history', now());

-- Groups without a request for a day or longer, as retention found them.
create table rouse.idle_groups (
  group_id integer primary key,
  since timestamptz not null,      -- from when its idle time counts; time in which no node ran does not
  messages bigint not null default 0,  -- what it had not completed when measured
  oldest_at timestamptz,           -- when the oldest of them was created
  is_partial boolean not null default false,  -- too many partitions to count: there are more
  measured_at timestamptz,
  let_go_at timestamptz,           -- from when it no longer holds messages back
  warned_at timestamptz
) with (fillfactor = 70);
