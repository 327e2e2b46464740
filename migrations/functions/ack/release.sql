-- Returns the messages that leases still hold, at once and without charging an attempt.
-- Parameters: lease ids.
-- Result: the leases with their wake hints; no row for a lease that is gone or expired.
-- Locks: lanes by (partition, group), then leases by id with SKIP LOCKED.
create or replace function rouse.release(p_lease_ids uuid[])
returns table (lease_id uuid, hint rouse.wake_hint)
language plpgsql
set lock_timeout = '250ms'  -- a longer wait fails with 55P03, and the node retries in a separate queue
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v rouse.leases;
  v_now timestamptz;
  v_first bigint;
  v_tail bigint;
begin
  perform rouse.raise_durability();
  perform rouse.lock_leases(p_lease_ids, true);
  -- barrier: release-locked
  v_now := rouse.now();
  for v in
    select s.* from rouse.leases s
    where s.id = any (p_lease_ids) and s.expires_at > v_now
    order by s.id, s.partition_id
    for update skip locked
  loop
    delete from rouse.leases s where s.id = v.id and s.partition_id = v.partition_id;
    v_first := v.from_seq + position(B'1' in v.unacked) - 1;
    select p.tail into v_tail from rouse.partitions p where p.id = v.partition_id;
    -- If the messages are fresh and were the last ones delivered, the cursor moves back over them. All others
    -- become redeliveries. That includes a redriven message. Its lease is for attempt 1, like that of a fresh
    -- message, but its row may be below the tail or older than the queue's ttl, where the cursor would skip
    -- it. A redriven message is recognised by its recorded attempts.
    update rouse.lanes l
    set next = v_first, ready = true, blocked_until = null, lease_id = case when l.lease_id = v.id then null else l.lease_id end
    where l.partition_id = v.partition_id and l.group_id = v.group_id and v.attempt = 1 and l.next = v.to_seq + 1
      and bit_count(v.unacked) = v.to_seq - v_first + 1 and v_first >= v_tail
      and not exists (select from rouse.redeliveries r
        where r.partition_id = v.partition_id and r.group_id = v.group_id and r.seq >= v_first)
      and not exists (select from rouse.attempts a
        where a.partition_id = v.partition_id and a.seq >= v_first and a.seq <= v.to_seq and a.group_id = v.group_id
          and a.outcome not in ('retry', 'completed'));
    if not found then
      insert into rouse.redeliveries (partition_id, group_id, seq, attempt, alone, due_at, announced)
      select v.partition_id, v.group_id, s, v.attempt - 1,
        v.attempt > 1 or s < v_tail or exists (select from rouse.attempts a
          where a.partition_id = v.partition_id and a.seq = s and a.group_id = v.group_id and a.outcome not in ('retry', 'completed')),
        v_now, true
      from unnest(rouse.held_seqs(v.from_seq, v.unacked)) s
      on conflict on constraint redeliveries_pkey do nothing;  -- a redrive may have inserted it
      update rouse.lanes l set ready = true, blocked_until = null, lease_id = case when l.lease_id = v.id then null else l.lease_id end
      where l.partition_id = v.partition_id and l.group_id = v.group_id;
    end if;
    -- barrier: release-written
    lease_id := v.id;
    select q.name, case when not v.limited then p.name end, g.name, q.namespace, q.task, bit_count(v.unacked) into hint
    from rouse.partitions p join rouse.queues q on q.id = p.queue_id join rouse.groups g on g.id = v.group_id
    where p.id = v.partition_id;
    continue when not found;  -- its group was deleted
    return next;
  end loop;
end $$;
