-- Who shares this database is one cluster, whatever its nodes are called and wherever the database moves to.
create table rouse.cluster (
  id uuid not null default gen_random_uuid(),
  only_row boolean primary key default true check (only_row)
);
insert into rouse.cluster default values;
