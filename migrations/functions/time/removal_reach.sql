-- Which messages and keys a removal in progress covers, before its steps have reached them.

-- Whether a removal covers a scheduled message, which means that the message existed when the operator
-- called. For messages from nodes the creation time decides, because their transactions are short. The
-- transaction of a SQL producer may have been open during the call, and what it commits later must stay. So
-- its rows are covered only if they are older than every transaction that was open during the call.
-- Parameters: the removal; the message's origin, the time it was scheduled, and its xmin. Result: a boolean.
-- Locks: none.
create or replace function rouse.is_removed(p rouse.removals, p_origin text, p_created_at timestamptz, p_xmin xid) returns boolean
language sql stable
as $$
  select p_created_at <= p.requested_at and (p_origin = 'broker' or age(p_xmin) > age(p.oldest_xid::xid))
$$;

-- Whether a purge or a deletion of the queue covers a due scheduled message, but the steps of this removal
-- have not reached the message yet.
-- Parameters: the message's queue, origin, the time it was scheduled, its xmin. Result: a boolean.
-- Locks: none.
create or replace function rouse.is_due_in_vain(p_queue text, p_origin text, p_created_at timestamptz, p_xmin xid) returns boolean
language sql stable
as $$
  select exists (
    select from rouse.removals r
    where r.queue = p_queue and r.kind in ('purge', 'queue') and r.phase in ('scheduled', 'tails')
      and rouse.is_removed(r, p_origin, p_created_at, p_xmin))
$$;

-- Whether a purge in steps covers the message of a dedupe key. Such a key no longer counts. Otherwise a
-- message pushed after the purge would be a duplicate of one that the purge removes.
-- Parameters: the purge, the key. Result: a boolean. Locks: none.
create or replace function rouse.is_key_purged(p rouse.removals, p_key rouse.dedup) returns boolean
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v rouse.partitions;
begin
  if p_key.seq is not null then
    select t.* into v from rouse.partitions t where t.id = p_key.partition_id;
    return p_key.seq < rouse.purged_to(v, p.requested_at);
  end if;
  -- The message is scheduled, or was cancelled then, and no index finds its row by key. It was scheduled one
  -- dedupe window before its key expires.
  return p_key.expires_at <= p.requested_at + (select q.dedup_window_ms from rouse.queues q where q.id = p.queue_id) * interval '1 millisecond';
end $$;

-- The first seq of a partition that a purge keeps.
-- Parameters: the partition, the time of the purge. Result: a seq from tail to head. Locks: none.
create or replace function rouse.purged_to(p rouse.partitions, p_time timestamptz) returns bigint
language plpgsql stable
as $$
begin
  return case when p.last_created_at <= p_time then p.head
    else rouse.seq_at(p.id, p.tail, p.head, p_time + interval '1 millisecond') end;
end $$;

-- Whether a purge in steps has not reached all partitions of a queue yet.
-- Parameters: the queue's id. Result: a boolean. Locks: none.
create or replace function rouse.is_being_purged(p_queue_id integer) returns boolean
language sql stable
as $$
  select exists (
    select from rouse.removals r where r.queue_id = p_queue_id and r.kind = 'purge' and r.phase in ('scheduled', 'tails'))
$$;
