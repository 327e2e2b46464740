-- works-with: 4
-- Queues whose messages are in order by key: those without a partition are independent of each other.

lock table rouse.queues, rouse.schedules, rouse.redeliveries in access exclusive mode;
alter table rouse.queues drop constraint queues_ordering_check,
  add constraint queues_ordering_check check (ordering in ('keyed', 'partition', 'none'));
-- Null: the messages of the schedule name no partition. Schedules that exist keep theirs.
alter table rouse.schedules alter column partition drop not null, alter column partition drop default;
-- What an unordered lane can deliver again. There may be any number of rows that wait for their due time.
create index redeliveries_announced on rouse.redeliveries (partition_id, group_id, seq) where announced;
