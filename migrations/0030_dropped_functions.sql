-- works-with: 4
-- Drops a function that no node has ever called.
drop function if exists rouse.ack_and_pop(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text, text, text, text, text, text,
  integer[], integer[], bigint[], boolean[], text[], text, timestamptz, bigint, bigint);
