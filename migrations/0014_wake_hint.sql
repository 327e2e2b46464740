-- works-with: 4
-- A wake hint: messages may be deliverable. Every function that can make a message deliverable returns its hints in this type.
create type rouse.wake_hint as (
  queue text,
  partition text,       -- null: any partition of the queue
  consumer_group text,  -- null: all groups of the queue
  namespace text,
  task text,
  count bigint          -- how many messages; 0: not known
);

-- Their result has the type from now on; `create or replace` cannot change a result.
drop function if exists rouse.ack(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text);
drop function if exists rouse.ack_general(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text);
drop function if exists rouse.free_lane(rouse.leases, boolean, boolean);
drop function if exists rouse.release(uuid[]);
drop function if exists rouse.transaction(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text, text[], text[],
  integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[]);
drop function if exists rouse.seek(text, text, timestamptz);
drop function if exists rouse.pause(text, boolean);
drop function if exists rouse.promote_ready(integer);
drop function if exists rouse.promote_lanes(integer);
drop function if exists rouse.promote_freed(integer);
drop function if exists rouse.promote_scheduled(integer);
drop function if exists rouse.promote_partition(text, text, integer, integer);
drop function if exists rouse.reap_step(integer);
drop function if exists rouse.redrive(text, text, text, bigint[], integer, boolean);
drop function if exists rouse.redrive_letters(rouse.queues, bigint[]);
drop function if exists rouse.redrive_step(text);
drop function if exists rouse.removal_step(text);
drop function if exists rouse.fire_schedule(bigint, timestamptz, uuid[], timestamptz[], timestamptz, text, text[], text);
