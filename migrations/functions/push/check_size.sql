-- Refuses a push that would make a queue larger than its size limit. The queue row stays locked until the end
-- of the transaction, so two pushes cannot both use the last free space. With up to 1,000 partitions the size
-- is exact; with more, it is a count that is at most a second old plus what was pushed since.
-- Parameters: per slot (see push_general) the queue id; per message to be added its slot. Result: nothing.
-- Locks: none beyond the limited queues, which the caller holds.
create or replace function rouse.check_size(p_queue_ids integer[], p_slots integer[]) returns void
language plpgsql
as $$
declare
  v record;
  v_size bigint;
  v_exact boolean;
begin
  for v in
    select q.id, q.name, q.size_max, q.size_seen, q.size_seen_at, a.adding
    from rouse.queues q
    join (select p_queue_ids[s] as id, count(*) as adding from unnest(p_slots) s group by 1) a on a.id = q.id
    where q.size_max > 0
    order by q.id
  loop
    v_exact := (select count(*) <= 1000 from (select from rouse.partitions where queue_id = v.id limit 1001) p);
    if v_exact or v.size_seen is null or v.size_seen_at < rouse.now() - interval '1 second' then
      v_size := rouse.queue_size(v.id);
    else
      v_size := v.size_seen;
    end if;
    if v_size + v.adding > v.size_max then
      perform rouse.raise('RS429', 'queue_full', format('queue "%s" holds %s of at most %s messages', v.name, v_size, v.size_max),
        jsonb_build_object('queue', v.name, 'size', v_size, 'maxSize', v.size_max));
    end if;
    if not v_exact then
      update rouse.queues set size_seen = v_size + v.adding,
        size_seen_at = case when v_size is distinct from v.size_seen then rouse.now() else size_seen_at end
      where id = v.id;
    end if;
  end loop;
end $$;

-- The number of messages in a queue: those that its slowest group has not consumed (without a group: all that
-- are kept), plus scheduled ones.
-- Parameters: the queue's id. Result: the count. Locks: none.
create or replace function rouse.queue_size(p_queue_id integer) returns bigint
language sql stable
set enable_seqscan = off  -- the cost must not depend on rows of other queues
as $$
  select coalesce(
      (select max(o.pending) from (
        select coalesce(sum(p.head - greatest(l.next, p.tail)
            - case when p.options_until > greatest(l.next, p.tail) then rouse.excluded_count(p.id, greatest(l.next, p.tail)) else 0 end), 0)
          + coalesce(sum((select count(*) from rouse.redeliveries r where r.partition_id = p.id and r.group_id = g.id)), 0)
          + coalesce(sum((select bit_count(s.unacked) from rouse.leases s where s.id = l.lease_id and s.partition_id = p.id)), 0)
          + coalesce(sum((select sum(bit_count(s.unacked)) from rouse.leases s
              where s.partition_id = p.id and s.group_id = g.id and not s.ordered)), 0) as pending
        from (select o.id from rouse.groups o where o.queue_id = p_queue_id offset 0) g
        left join rouse.partitions p on p.queue_id = p_queue_id
        left join rouse.lanes l on l.partition_id = p.id and l.group_id = g.id
        group by g.id) o),
      (select sum(p.head - p.tail - case when p.options_until > p.tail then rouse.excluded_count(p.id, p.tail) else 0 end)
       from rouse.partitions p where p.queue_id = p_queue_id), 0)::bigint
    + (select count(*) from rouse.scheduled s where s.queue = (select q.name from rouse.queues q where q.id = p_queue_id))
$$;
