-- works-with: 4
-- Finds a message by an id that does not name its place: one that was scheduled got its id before its place, and an encrypted payload is
-- bound to its id before it is stored. Ids of other messages contain partition and seq, and have no row here. The row goes with the message.
create table rouse.message_ids (
  id uuid primary key,
  partition_id bigint not null,
  seq bigint not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

create index scheduled_by_message on rouse.scheduled (message_id);
