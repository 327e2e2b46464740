-- Leases fresh messages of several ordered lanes to one waiter, with a fixed number of statements instead of
-- some per lane.
-- Parameters: the queue (id, version, name and ordering, as read by the caller), the group's id; how many messages
--   and lanes the waiter takes at most, the lease time in ms, the holder's name; the partition id after which
--   the search starts; the maximum bytes of payload and headers.
-- Result: as pop, without the last row. No row: nothing was leased, because no lane was found, or a lane
--   needs the general form, or the messages are too large for one result or missing from the log.
-- Locks: as pop.
create or replace function rouse.pop_lanes(
  p_queue_id integer, p_version bigint, p_queue text, p_ordering text, p_group_id integer, p_batch integer, p_lanes_max integer,
  p_lease_ms bigint, p_holder text, p_after bigint, p_bytes_max bigint
) returns table (
  status text, waiter integer, lease_id uuid, queue text, partition_id bigint, partition text, attempt integer,
  expires_ms double precision, seq bigint, message_id uuid, created_ms double precision, transaction_id text,
  trace_id text, payload text, headers text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_lanes bigint[];        -- the lanes that are locked
  v_taken record;          -- of the lanes that give messages: partition ids, names, first seqs, seqs after the last
  v_settled bigint[];
  v_lease_id constant uuid := gen_random_uuid();
  v_now timestamptz;
  v_rows bigint;
begin
  -- This statement locks lanes. Later statements read them, and see everything that was committed before the
  -- lock. Drained lanes that are still ready are skipped without a lock.
  v_lanes := array(
    select l.partition_id from rouse.lanes l
    cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
    where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
      and l.partition_id > p_after and (p.head > greatest(l.next, p.tail) or exists (
        select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = p_group_id))
    order by l.group_id, l.partition_id
    limit p_lanes_max
    for no key update of l skip locked);
  if v_lanes = '{}' and p_after > 0 then
    v_lanes := array(  -- the lanes before the start
      select l.partition_id from rouse.lanes l
      cross join lateral (select p.head, p.tail from rouse.partitions p where p.id = l.partition_id offset 0) p
      where l.group_id = p_group_id and l.ready and l.lease_id is null and l.blocked_until is null
        and l.partition_id <= p_after and (p.head > greatest(l.next, p.tail) or exists (
          select from rouse.redeliveries r where r.partition_id = l.partition_id and r.group_id = p_group_id))
      order by l.group_id, l.partition_id
      limit p_lanes_max
      for no key update of l skip locked);
  end if;
  -- barrier: pop-lanes-locked
  select array_agg(t.id) as ids, array_agg(t.name) as names, array_agg(t.first) as firsts, array_agg(t.next) as nexts,
    sum(t.next - t.first) as messages, sum(m.found) as found, sum(m.bytes) as bytes, array_agg(t.id) filter (where t.next = t.head) as drained,
    coalesce(bool_and(t.is_plain), false)
      and not exists (select from rouse.redeliveries r where r.partition_id = any (v_lanes) and r.group_id = p_group_id)
      -- configure locks the lanes before it changes the ordering
      and exists (select from rouse.queues q where q.id = p_queue_id and q.version = p_version) as is_plain
  into v_taken
  from (
    select t.*, least(t.first + p_batch - t.before, t.head) as next
    from (
      select p.id, p.name, p.head, greatest(l.next, p.tail) as first,
        coalesce(sum(p.head - greatest(l.next, p.tail)) over (order by p.id rows between unbounded preceding and 1 preceding), 0)::bigint
          as before,
        rouse.is_ordered(p_ordering, p.name) and p.options_until <= greatest(l.next, p.tail) and p.head > greatest(l.next, p.tail)
          as is_plain
      from rouse.lanes l
      cross join lateral (select * from rouse.partitions p where p.id = l.partition_id offset 0) p
      where l.partition_id = any (v_lanes) and l.group_id = p_group_id
    ) t
    where t.before < p_batch
    order by t.id offset 0
  ) t
  cross join lateral (
    select count(*) as found, sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) as bytes
    from rouse.messages m where m.partition_id = t.id and m.seq >= t.first and m.seq < t.next
  ) m;
  if not v_taken.is_plain or v_taken.found < v_taken.messages or v_taken.bytes > p_bytes_max then
    return;
  end if;
  v_now := rouse.now();
  -- barrier: pop-lanes-offered
  return query
  select null::text, 1, v_lease_id, p_queue, t.id, rouse.shown_partition(t.name), 1, date_part('epoch', v_now) * 1000 + p_lease_ms,
    m.seq, m.id, date_part('epoch', m.created_at) * 1000, m.transaction_id, m.trace_id, m.payload, m.headers
  from unnest(v_taken.ids, v_taken.names, v_taken.firsts, v_taken.nexts) with ordinality t(id, name, first, next, n)
  cross join lateral (
    select * from rouse.messages m where m.partition_id = t.id and m.seq >= t.first and m.seq < t.next order by m.seq offset 0
  ) m;
  get diagnostics v_rows = row_count;
  if v_rows <> v_taken.messages then
    perform rouse.raise('RS001', 'retry', 'messages were deleted while they were popped');
  end if;
  -- Settle: clears `ready` of drained lanes (see pop_general). Partitions are locked in ascending order.
  v_settled := array(
    select p.id from rouse.partitions p where p.id = any (v_taken.drained) order by p.id for no key update skip locked);
  -- barrier: pop-lanes-settling
  -- This must be a new statement: it then sees the new head of every push that had locked the partition
  -- before.
  with leased as (
    insert into rouse.leases (id, partition_id, group_id, from_seq, to_seq, unacked, attempt, ordered, limited, holder, delivered_at, expires_at)
    select v_lease_id, t.id, p_group_id, t.first, t.next - 1, rpad('1', (t.next - t.first)::integer, '1')::varbit, 1, true, false, p_holder,
      v_now, v_now + p_lease_ms * interval '1 millisecond'
    from unnest(v_taken.ids, v_taken.firsts, v_taken.nexts) t(id, first, next)
  )
  update rouse.lanes l
  set next = v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)], lease_id = v_lease_id,
    ready = not (l.partition_id = any (v_settled)
      and v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)] = (select p.head from rouse.partitions p where p.id = l.partition_id))
  where l.partition_id = any (v_taken.ids) and l.group_id = p_group_id;
  get diagnostics v_rows = row_count;
  if v_rows <> cardinality(v_taken.ids) then
    perform rouse.raise('RS001', 'retry', 'a lane was deleted while it was popped');
  end if;
  -- barrier: pop-lanes-leased
end $$;
