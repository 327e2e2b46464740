-- What a round of retention passed over in its earlier steps, so that the last one knows that a round should come soon.
alter table rouse.chores add column passed bigint not null default 0;
