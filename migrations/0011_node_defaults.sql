-- works-with: 1
-- The defaults of queue options that each node was started with (ROUSE_DEFAULT_*), so that nodes see where they disagree. Null for
-- nodes of a release that does not write it.
alter table rouse.nodes add column queue_defaults jsonb;
