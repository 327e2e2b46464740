-- works-with: 4
-- Drops functions that have another name, parameters or result now; the functions of this release are created after the migrations.
-- Nodes of an older release do not work with these, so stop all of them before the upgrade.
drop function if exists rouse.push_many(text[], text[], integer[], uuid[], text[], text[], text[], text[], bigint[], timestamptz[]);
drop function if exists rouse.pop_many(text, text, text, text, text, integer[], integer[], bigint[], boolean[], text[], text,
  timestamptz, bigint, boolean);
drop function if exists rouse.pop_many(text, text, text, text, text, integer[], integer[], bigint[], boolean[], text[], text,
  timestamptz, bigint, boolean, bigint);
drop function if exists rouse.pop(text, text, text, text, text, integer[], integer[], bigint[], boolean[], text[], text, timestamptz,
  bigint, boolean);
drop function if exists rouse.ack_many(uuid[], bigint[], bigint[], text[], text[], text[], bigint[], text);
drop function if exists rouse.check_sealed(integer[], integer[], text[]);
drop function if exists rouse.check_size(integer[], integer[]);
drop function if exists rouse.places_of(integer[], integer[]);
drop function if exists rouse.remember_keys(bigint[], bigint[], bigint[], bigint[], integer[], uuid[], text[], timestamptz);
drop function if exists rouse.sort_push(bigint[], bigint[], bigint[], bigint[], integer[], uuid[], text[], bigint[], timestamptz[],
  timestamptz);
drop function if exists rouse.take_again(integer, bigint, bigint, integer, integer, boolean);
drop function if exists rouse.due_schedules(integer);
drop function if exists rouse.fire_schedule(bigint, timestamptz, uuid[], timestamptz[], timestamptz);
drop function if exists rouse.write_queue(text, text, text, jsonb, boolean);
drop function if exists rouse.retain_rest(timestamptz, bigint, bigint, bigint, integer);
drop function if exists rouse.retention_tail(bigint, integer, bigint, bigint, bigint, bigint, bigint, bigint, timestamptz);
drop function if exists rouse.held_from(bigint);
drop function if exists rouse.promote_due(integer);
drop function if exists rouse.reap_expired(integer);
