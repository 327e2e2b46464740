-- What belongs to a removal that is under way, before its steps have come to it.

-- Whether a removal takes this scheduled message: it was there when the operator asked. The broker schedules in transactions
-- that are short, so the time decides. A SQL producer's transaction may have been open then, and what it commits later must
-- stay: its rows go only if they are older than any transaction that was open.
-- Parameters: the removal; of the message, its origin, the time it was scheduled, and its xmin. Result: yes or no. Locks: none.
create or replace function rouse.is_removed(p rouse.removals, p_origin text, p_created_at timestamptz, p_xmin xid) returns boolean
language sql stable
as $$
  select p_created_at <= p.requested_at and (p_origin = 'broker' or age(p_xmin) > age(p.oldest_xid::xid))
$$;

-- Whether a scheduled message that is due belongs to a purge or a deleted queue whose steps have not come to it yet.
-- Parameters: of the message, its queue, origin, the time it was scheduled, its xmin. Result: yes or no. Locks: none.
create or replace function rouse.is_due_in_vain(p_queue text, p_origin text, p_created_at timestamptz, p_xmin xid) returns boolean
language sql stable
as $$
  select exists (
    select from rouse.removals r
    where r.queue = p_queue and r.kind in ('purge', 'queue') and r.phase in ('scheduled', 'tails')
      and rouse.is_removed(r, p_origin, p_created_at, p_xmin))
$$;

-- Whether the message that a dedup key names belongs to a purge in steps: the key is forgotten before the step comes, or what is
-- pushed after the purge would be a duplicate of what it removes.
-- Parameters: the purge, the key. Result: yes or no. Locks: none.
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
  -- Of a scheduled message, whose row no index finds by its key: the broker scheduled it a window before the key expires.
  return p_key.expires_at <= p.requested_at + (select q.dedup_window_ms from rouse.queues q where q.id = p.queue_id) * interval '1 millisecond';
end $$;

-- The first seq of a partition that a purge leaves.
-- Parameters: the partition, the time of the purge. Result: a seq from tail to head. Locks: none.
create or replace function rouse.purged_to(p rouse.partitions, p_time timestamptz) returns bigint
language plpgsql stable
as $$
begin
  return case when p.last_created_at <= p_time then p.head
    else rouse.seq_at(p.id, p.tail, p.head, p_time + interval '1 millisecond') end;
end $$;

-- Whether steps of a purge have still to come to some of a queue's partitions.
-- Parameters: the queue's id. Result: yes or no. Locks: none.
create or replace function rouse.is_being_purged(p_queue_id integer) returns boolean
language sql stable
as $$
  select exists (
    select from rouse.removals r where r.queue_id = p_queue_id and r.kind = 'purge' and r.phase in ('scheduled', 'tails'))
$$;
