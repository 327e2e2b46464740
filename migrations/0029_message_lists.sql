-- works-with: 4
-- Lists of cancelled messages read a page by index, whatever filter they have.

lock table rouse.cancelled, rouse.message_options in access exclusive mode;

-- In the order of the list of scheduled messages.
create index cancelled_by_partition on rouse.cancelled (queue, partition, due_at, id);
drop index rouse.cancelled_by_queue;

-- Messages with other options may be many.
create index message_options_cancelled on rouse.message_options (partition_id, seq) where cancelled_at is not null;
