-- Rates: how many messages a consumer group gets in a time. A bucket holds `limit` tokens, one per delivery, and
-- refills in `per_ms`. It is stored as one time: when it will be full again.

-- The tokens in a bucket.
-- Parameters: limit and ms of the rate, when the bucket will be full (null: it is), the time now.
-- Result: the number, from 0 to the limit. Locks: none.
create or replace function rouse.rate_tokens(p_limit integer, p_per_ms bigint, p_full_at timestamptz, p_now timestamptz) returns bigint
language sql immutable
as $$
  select case when p_full_at is null then p_limit
    else greatest(0, least(p_limit, floor((extract(epoch from p_now - p_full_at) * 1000 + p_per_ms) * p_limit / p_per_ms))) end::bigint
$$;

-- When a bucket will be full after some tokens were taken from it.
-- Parameters: as rate_tokens, then the tokens taken. Result: the time. Locks: none.
create or replace function rouse.rate_after(
  p_limit integer, p_per_ms bigint, p_full_at timestamptz, p_now timestamptz, p_taken bigint
) returns timestamptz
language sql immutable
as $$
  -- Rounded up, so that the rate is never exceeded.
  select greatest(p_full_at, p_now) + ceil(p_taken * p_per_ms * 1000.0 / p_limit)::float8 * interval '1 microsecond'
$$;

-- When a bucket will hold the tokens that accrue in v_wait_ms, or at least one token. Waiters of a group that
-- has used up its bucket are woken at that time, so that a high rate does not wake them for every token.
-- Parameters: limit and ms of the rate, when the bucket will be full. Result: the time. Locks: none.
create or replace function rouse.rate_opens_at(p_limit integer, p_per_ms bigint, p_full_at timestamptz) returns timestamptz
language plpgsql immutable
as $$
declare
  v_wait_ms constant integer := 50;
  v_tokens constant bigint := greatest(1, least(p_limit, v_wait_ms::bigint * p_limit / p_per_ms));
begin
  return p_full_at - p_per_ms * interval '1 millisecond' + ceil(v_tokens * p_per_ms * 1000.0 / p_limit)::float8 * interval '1 microsecond';
end $$;

-- Takes the tokens of a pop out of the bucket of its group. If the bucket is used up and the group has a lane to
-- pop, the group is blocked until the bucket holds tokens again. A block that another pop has set stays: its
-- end wakes waiters.
-- Parameters: the queue; the group's id; the time at which the bucket was read; the number of tokens that it
--   held then; the number of messages delivered.
-- Result: when the block ends; null if there is none. Locks: none beyond the group, which the caller holds.
create or replace function rouse.take_rate(
  p_queue rouse.queues, p_group_id integer, p_now timestamptz, p_tokens bigint, p_taken bigint
) returns timestamptz
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_full_at timestamptz;
  v_blocked_until timestamptz;
begin
  if p_taken < p_tokens and p_taken = 0 then
    return null;
  end if;
  select rouse.rate_after(p_queue.rate_limit, p_queue.rate_per_ms, g.rate_tat, p_now, p_taken) into v_full_at
  from rouse.groups g where g.id = p_group_id;
  if p_taken >= p_tokens and exists (
    select from rouse.lanes l where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
  ) then
    v_blocked_until := rouse.rate_opens_at(p_queue.rate_limit, p_queue.rate_per_ms, v_full_at);
  end if;
  update rouse.groups g set rate_tat = v_full_at, blocked_until = coalesce(v_blocked_until, g.blocked_until)
  where g.id = p_group_id and (p_taken > 0 or g.blocked_until is distinct from coalesce(v_blocked_until, g.blocked_until));
  return v_blocked_until;
end $$;

-- Clears the blocks of the groups of a queue whose rate changes. A bucket is full after `per_ms` of the new
-- rate at the latest: otherwise it could stay empty for as long as the old rate needs to fill it.
-- Parameters: the queue's id, limit and ms of the new rate (limit 0: none). Result: nothing.
-- Locks: the groups by id. The lanes come later, so the caller holds none.
create or replace function rouse.reset_rates(p_queue_id integer, p_limit integer, p_per_ms bigint) returns void
language plpgsql
as $$
begin
  perform from rouse.groups g where g.queue_id = p_queue_id order by g.id for no key update;
  -- barrier: reset-rates-locked
  update rouse.groups g set blocked_until = null,
    rate_tat = case when p_limit > 0 then least(g.rate_tat, rouse.now() + p_per_ms * interval '1 millisecond') end
  where g.queue_id = p_queue_id and (g.rate_tat is not null or g.blocked_until is not null);
end $$;
