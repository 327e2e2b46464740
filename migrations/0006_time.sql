-- What the clocks of nodes look at: when chores and schedules are due next, all in tiny indexes.

-- Work that one node at a time does for all, step by step. Whoever finds a row due and not locked takes the next step;
-- a node that dies leaves the row as it was, so that the next to look goes on.
create table rouse.chores (
  name text primary key,
  next_at timestamptz not null,
  position bigint not null default 0,  -- where the next step begins
  steps bigint not null default 0,     -- how many were done, ever
  holder text,                         -- the node that did the last
  last_at timestamptz
) with (fillfactor = 50);
insert into rouse.chores (name, next_at) values ('retention', now());

create index schedules_by_next on rouse.schedules (next_at) where next_at is not null;

-- Whether any queue has a window buffer, without reading them all.
create index queues_with_window on rouse.queues (id) where window_ms > 0;

-- Whether commits of SQL producers may notify (ROUSE_NOTIFY).
alter table rouse.server_defaults add column notify boolean not null default true;

-- Replaced by due_times, which knows more than the next.
drop function if exists rouse.next_due();
