-- works-with: 1
-- What operators purged or deleted, and what is left of it to remove in steps.

-- One row for each purge and each deleted queue or group, until nothing of it is left. A node that dies between two
-- steps leaves the row as it was; the next node goes on from there.
create table rouse.removals (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('purge', 'queue', 'group')),
  queue text not null,                     -- its name when the operator asked; a deleted queue's name may be in use again
  queue_id integer not null,
  group_ids integer[] not null,            -- groups that are deleted with it; empty for a purge
  ordered boolean not null,                -- the queue's ordering is by partition: lanes name their leases
  requested_at timestamptz not null,       -- what was pushed up to then goes
  oldest_xid xid8 not null,                -- the oldest transaction that was open then
  phase text not null check (phase in ('scheduled', 'tails', 'partitions', 'letters')),
  position text not null default '',       -- the partition, by name, after which the next step begins
  key_position text,                       -- the dedup key of that step's partition after which it goes on
  passed bigint not null default 0,        -- partitions of this round that were locked and are left for the next round
  next_at timestamptz not null
) with (fillfactor = 50);
create unique index removals_one_purge on rouse.removals (queue_id) where kind = 'purge';
create index removals_by_next on rouse.removals (next_at);

-- Dedup keys of messages below this seq were forgotten by a purge. `tail` does not say so: it also passes messages that were
-- consumed, whose keys still count.
alter table rouse.partitions add column keys_from bigint not null default 0;

-- Due while there is anything to remove.
insert into rouse.chores (name, next_at) values ('removal', 'infinity');
