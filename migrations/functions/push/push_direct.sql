-- Appends one message and, if nothing stands before it, leases it to a request that waits for messages: what a push
-- and a pop of its partition would do in two calls.
-- Parameters: queue and partition (null: as for push_v2); id, payload as JSON text, transaction id, trace id, headers;
--   the consumer group of the waiting request, its lease time in ms (null: the queue's) and its holder; the id of
--   the lease, chosen by the caller, who can then release it if the outcome is unknown; the maximum wait for a lock.
-- Result: the row of push_v2, and, if the message was leased, the times in ms of its creation, of the lease and of the
--   lease's expiry.
-- Locks: as push_v2. The message is leased only through a lane that the push itself has to lock, because it was
--   not ready: so no other call is delivering from it, and nothing else in the lane is deliverable.
create or replace function rouse.push_direct(
  p_queue text, p_partition text, p_id uuid, p_payload text, p_transaction_id text, p_trace_id text, p_headers text,
  p_group text, p_lease_ms bigint, p_holder text, p_lease_id uuid,
  p_lock_timeout_ms integer default null
) returns table (
  target integer, partition_id bigint, first_seq bigint, added integer, namespace text, task text,
  duplicates integer[], originals uuid[], scheduled integer[], replaced integer[], partition text,
  created_ms double precision, leased_ms double precision, expires_ms double precision
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_id bigint;
  v_queue_id integer;
  v_version bigint;
  v_group_id integer;
  v_leased_group_id integer;
  v_lease_ms bigint;
  v_ordered boolean;
  v_tail bigint;
  v_last_created_at timestamptz;
  v_dedup_ms bigint;
  v_now timestamptz;
  v_setting text;
begin
  if p_lock_timeout_ms is not null then
    v_setting := set_config('lock_timeout', p_lock_timeout_ms::text, true);
  end if;
  if p_id is not null and p_payload is not null and p_lease_id is not null and current_setting('transaction_isolation') = 'read committed' then
    select 1, p.id, p.id, p.head, 1, q.namespace, q.task, p.name, p.last_created_at, p.tail, q.dedup_window_ms,
      q.id, q.version, coalesce(p_lease_ms, q.lease_ms), rouse.is_ordered(q.ordering, p.name),
      (select g.id from rouse.groups g
       where q.plain and g.queue_id = q.id and g.name = p_group and g.last_seen_at > rouse.now() - interval '1 minute')
    into target, partition_id, v_id, first_seq, added, namespace, task, partition, v_last_created_at, v_tail, v_dedup_ms,
      v_queue_id, v_version, v_lease_ms, v_ordered, v_group_id
    from rouse.queues q, rouse.partitions p
    where q.name = p_queue and q.size_max = 0 and q.delay_ms = 0 and not q.encryption and p.queue_id = q.id
      and p.name = rouse.partition_of(q.ordering, p_partition)
      and not (q.ordering = 'partition' and rouse.is_level(p.name))
    for no key update of p;
  end if;
  if v_id is null then
    return query
    select r.*, null::double precision, null::double precision, null::double precision
    from rouse.push_v2(array[p_queue], array[p_partition], '{1}', array[p_id], array[p_payload],
      case when p_transaction_id is not null then array[p_transaction_id] end,
      case when p_trace_id is not null then array[p_trace_id] end,
      case when p_headers is not null then array[p_headers] end) r;
    return;
  end if;
  -- barrier: push-direct-locked
  if current_setting('synchronous_commit') in ('off', 'local') then
    v_setting := set_config('synchronous_commit', 'on', true);
  end if;
  v_now := rouse.now();
  if p_transaction_id is not null and v_dedup_ms > 0 then
    insert into rouse.dedup (partition_id, key, message_id, seq, expires_at)
    values (v_id, p_transaction_id, p_id, first_seq, v_now + v_dedup_ms * interval '1 millisecond')
    on conflict on constraint dedup_pkey do nothing;
    if not found then
      return query
      select r.*, partition, null::double precision, null::double precision, null::double precision
      from rouse.push_known(v_id, first_seq, v_last_created_at, v_dedup_ms, namespace, task,
        array[p_id], array[p_payload], array[p_transaction_id],
        case when p_trace_id is not null then array[p_trace_id] end,
        case when p_headers is not null then array[p_headers] end, v_now) r;
      return;
    end if;
  end if;
  with appended as (
    insert into rouse.messages (partition_id, seq, id, created_at, transaction_id, trace_id, payload, headers)
    values (v_id, first_seq, p_id, greatest(v_now, v_last_created_at), p_transaction_id, p_trace_id, p_payload, p_headers)
  )
  update rouse.partitions p set head = first_seq + 1, last_created_at = greatest(v_now, v_last_created_at)
  where p.id = v_id;
  -- barrier: push-direct-appended
  perform from rouse.lanes l where l.partition_id = v_id and not l.ready order by l.group_id for no key update;
  if found then
    -- A new statement: it sees what was committed before the lanes were locked.
    insert into rouse.leases
    select p_lease_id, v_id, v_group_id, first_seq, first_seq, '1', 1, v_ordered, false, p_holder, v_now,
      v_now + v_lease_ms * interval '1 millisecond'
    from rouse.lanes l
    where l.partition_id = v_id and l.group_id = v_group_id and not l.ready and l.lease_id is null
      and l.blocked_until is null and greatest(l.next, v_tail) = first_seq
      and exists (select from rouse.queues q where q.id = v_queue_id and q.version = v_version)
      and not exists (select from rouse.redeliveries r where r.partition_id = v_id and r.group_id = v_group_id)
    returning group_id, date_part('epoch', greatest(v_now, v_last_created_at)) * 1000, date_part('epoch', v_now) * 1000,
      date_part('epoch', v_now) * 1000 + v_lease_ms
    into v_leased_group_id, created_ms, leased_ms, expires_ms;
    -- barrier: push-direct-leased
    update rouse.lanes l
    set ready = l.group_id is distinct from v_leased_group_id,
      next = case when l.group_id = v_leased_group_id then first_seq + 1 else l.next end,
      lease_id = case when l.group_id = v_leased_group_id and v_ordered then p_lease_id else l.lease_id end
    where l.partition_id = v_id and not l.ready;
  end if;
  return next;
end $$;
