-- What a unique key's message is doing. Acks, cancels, purges and retention do not touch keys, so that they cost
-- nothing there and need no place in the lock order. A push that wants a key decides from the message itself.
-- Parameters: the key, the time now.
-- Result: the message's id, its place in the log if it is there, and the state of the key:
--   free       no message holds it, and none will again: it was cancelled, purged, or removed by retention, or
--              the window is over
--   ended      free as well, but a seek or a redrive can open its message again
--   scheduled  held by a message that is not in the log yet
--   ready      held by a message that no group has been given
--   started    held by any other message
--   Until the message ends, it holds the key while a group has leased it, or while it is pending or to be
--   redelivered in a group that was seen within an hour of the queue's most recently seen one. So a group that
--   is no longer used holds no keys, and if all consumers are down, all of them do.
-- Locks: none. The answer stays true if the caller holds the key, for `ready` also all lanes of the partition
--   and the queue FOR SHARE, and for `scheduled` the row of the message.
create or replace function rouse.unique_state(
  p rouse.unique_keys, p_now timestamptz, out state text, out message_id uuid, out partition_id bigint, out seq bigint
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_variable
declare
  v_gone constant text := case when p.window_ms is null then 'free' else 'started' end;
  v_ended constant text := case when p.window_ms is null then 'ended' else 'started' end;
  v_seen_within constant interval := interval '1 hour';
  v_queue rouse.queues;
  v_message record;
  v_groups record;
begin
  partition_id := p.holder_partition;
  seq := p.seq;
  message_id := rouse.message_id(p.message_id, p.holder_partition, p.seq);
  select q.* into v_queue from rouse.queues q where q.id = p.queue_id;
  if not found or p.expires_at <= p_now or p.purges <> v_queue.purges then
    state := 'free';
    return;
  end if;
  if seq is null then
    perform from rouse.scheduled s where s.message_id = p.message_id;
    if found then
      state := 'scheduled';
      return;
    end if;
    select i.partition_id, i.seq into partition_id, seq from rouse.message_ids i where i.id = p.message_id;
  end if;
  select t.tail, o.cancelled_at, rouse.too_old(m, o, v_queue, p_now) as expired into v_message
  from rouse.messages m
  join rouse.partitions t on t.id = m.partition_id
  left join rouse.message_options o on o.partition_id = m.partition_id and o.seq = m.seq
  where m.partition_id = partition_id and m.seq = seq;
  if not found then
    state := case when exists (select from rouse.cancelled c where c.id = p.message_id) then 'free' else v_gone end;
    return;
  elsif v_message.cancelled_at is not null then
    state := 'free';
    return;
  end if;
  select count(*) as count, bool_and(s.status = 'pending') as untouched, bool_or(s.status = 'leased') as leased,
    bool_or(g.is_recent and (
      (s.status = 'pending' and seq >= v_message.tail and not v_message.expired)
      or (s.status = 'retrying' and (rouse.ends_at(r, v_queue) <= p_now) is not true))) as open
  into v_groups
  from (
    select o.id, o.last_seen_at >= max(o.last_seen_at) over () - v_seen_within as is_recent from rouse.groups o where o.queue_id = p.queue_id
  ) g
  join rouse.lanes l on l.partition_id = partition_id and l.group_id = g.id
  cross join lateral (select rouse.message_status(g.id, l.next, partition_id, seq) as status) s
  left join rouse.redeliveries r on r.partition_id = partition_id and r.group_id = g.id and r.seq = seq;
  state := case
    when v_groups.count = 0 then case when seq < v_message.tail then v_gone when v_message.expired then v_ended else 'ready' end
    when v_groups.leased then 'started'
    when not v_groups.open then case when v_groups.untouched and seq < v_message.tail then v_gone else v_ended end
    when v_groups.untouched then 'ready'
    else 'started' end;
end $$;

-- Whether a message that no group has been given is too old to be delivered.
-- Parameters: the message, its options or null, its queue, the time now. Result: a boolean. Locks: none.
create or replace function rouse.too_old(
  p rouse.messages, p_options rouse.message_options, p_queue rouse.queues, p_now timestamptz
) returns boolean
language sql stable
as $$
  select coalesce(p.created_at + least(nullif(p_queue.ttl_ms, 0), nullif(p_queue.wait_ms_max, 0)) * interval '1 millisecond'
    + interval '1 microsecond' <= p_now, false) or coalesce(p_options.expires_at <= p_now, false)
$$;

-- The unique key that a message holds or has held last, for users.
-- Parameters: the stored id of the message (null: none), the time now.
-- Result: an object with key, scope, until, and whether the message holds the key now; null if it has none.
-- Locks: none.
create or replace function rouse.unique_of(p_message_id uuid, p_now timestamptz) returns jsonb
language sql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
  select jsonb_build_object('key', k.key, 'scope', case when k.partition_id = 0 then 'queue' else 'partition' end,
    'until', case when k.window_ms is null then '"completed"' else jsonb_build_object('windowMs', k.window_ms) end,
    'held', s.state not in ('free', 'ended'))
  from rouse.unique_keys k cross join lateral rouse.unique_state(k, p_now) s
  where k.message_id = p_message_id and k.expires_at > '-infinity'
  limit 1
$$;

-- The same by the id that users see.
-- Parameters: the id; the place that it names, or nulls. Result: as unique_of. Locks: none.
create or replace function rouse.unique_by_id(p_id uuid, p_partition_id bigint, p_seq bigint) returns jsonb
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
  return rouse.unique_of(coalesce(
    (select m.id from rouse.messages m
     where m.partition_id = p_partition_id and m.seq = p_seq and rouse.message_id(m.id, m.partition_id, m.seq) = p_id), p_id), rouse.now());
end $$;
