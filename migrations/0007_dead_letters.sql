-- What dead letters need: found by their message, chosen by more than queue and group, and redrives that outlive the
-- node they began on.
create index dead_letters_by_message on rouse.dead_letters (partition_id, seq, group_id);

alter table rouse.redrives
  add column up_to bigint not null default 0,  -- the last letter there was when it began: what fails again is not moved again
  add column next_at timestamptz;              -- when the next step is due; null where none is
create index redrives_by_next on rouse.redrives (next_at) where state = 'running';

-- Due while a redrive runs.
insert into rouse.chores (name, next_at) values ('redrive', 'infinity');

-- Replaced by one that takes a filter.
drop function if exists rouse.dead_letters(text, text, integer, integer);
