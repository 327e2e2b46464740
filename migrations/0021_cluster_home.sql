-- works-with: 4
-- Where the database of this cluster is. A restored copy is elsewhere, and must not fire the schedules of the original a second
-- time. Both columns are null until the first node of a release that writes them has joined.
alter table rouse.cluster
  add column system_identifier bigint,
  add column database_name text;
