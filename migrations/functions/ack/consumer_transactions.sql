-- Leases that a consumer's open transaction (rouse.ack_in) has locked. Such a transaction may stay open for
-- hours, so operations of operators do not wait for it: they are refused and change nothing.

-- Refuses an operation that needs the leases of these groups if a consumer's transaction has locked one of
-- these leases. Operations call this function before they lock anything that pushes need. Later they lock the
-- leases with take_leases, which checks again, because a consumer may lock a lease in between. Unordered
-- leases are checked only by take_leases: locking them here would reject acks that arrive meanwhile.
-- Parameters: the queue's name, for the error; group ids.
-- Result: nothing, or RS409 consumer_transaction_open.
-- Locks: lanes with a lease, by (partition, group), leases by id; all are released before it returns.
create or replace function rouse.check_consumers(p_queue text, p_group_ids integer[]) returns void
language plpgsql
as $$
begin
  perform rouse.lock_leased_lanes(p_group_ids);
  perform rouse.take_leases(p_queue, p_group_ids, true);
  perform rouse.raise('RS002', 'internal', 'undo');
exception
  -- Not RS000: a code that ends in 000 matches its whole class, so this would also catch the refusal, RS409.
  when sqlstate 'RS002' then
    null;  -- leaving the block by an error has released its locks
end $$;

-- Locks the lanes in which these groups have leases, and so waits for acks that are in progress.
-- Parameters: group ids. Result: nothing. Locks: those lanes, by (partition, group).
create or replace function rouse.lock_leased_lanes(p_group_ids integer[]) returns void
language plpgsql
as $$
begin
  perform from rouse.lanes l
  join (select distinct s.partition_id, s.group_id from rouse.leases s where s.group_id = any (p_group_ids)) s
    on s.partition_id = l.partition_id and s.group_id = l.group_id
  order by l.partition_id, l.group_id
  for no key update of l;
end $$;

-- Locks the leases of these groups. The caller has locked their lanes, so no ack of an ordered lease is in
-- progress; advisory locks exclude acks of unordered leases. So a lease that is still locked is held by a
-- consumer's transaction.
-- Parameters: the queue's name, for the error; group ids; whether to leave out unordered leases.
-- Result: nothing, or RS409 consumer_transaction_open with the number of these locked leases and the age of
--   the oldest.
-- Locks: advisory locks by key, leases by id; it does not wait for leases.
create or replace function rouse.take_leases(p_queue text, p_group_ids integer[], p_ordered_only boolean default false) returns void
language plpgsql
as $$
declare
  v_keys_max constant integer := 1000;  -- each occupies an entry of the server's lock table
  v_keys bigint[] := '{}';
  v_seen record;
  v_taken record;
  v_open bigint;
  v_age_ms bigint;
begin
  if not p_ordered_only then
    v_keys := array(
      select distinct hashtextextended(s.id::text, 0) from rouse.leases s
      where s.group_id = any (p_group_ids) and not s.ordered order by 1 limit v_keys_max);
  end if;
  for i in 1..cardinality(v_keys) loop
    perform pg_advisory_xact_lock(v_keys[i]);
  end loop;
  select array_agg(s.id) as ids, array_agg(s.partition_id) as partitions into v_seen
  from rouse.leases s where s.group_id = any (p_group_ids) and (s.ordered or not p_ordered_only);
  if v_seen.ids is null then
    return;
  end if;
  select array_agg(s.id) as ids, array_agg(s.partition_id) as partitions into v_taken
  from (
    select s.id, s.partition_id from rouse.leases s
    where s.group_id = any (p_group_ids) and (s.ordered or not p_ordered_only)
    order by s.id, s.partition_id
    for update skip locked
  ) s;
  select count(*), ceil(1000 * extract(epoch from rouse.now() - min(s.delivered_at))) into v_open, v_age_ms
  from rouse.leases s join unnest(v_seen.ids, v_seen.partitions) n(id, partition_id) on n.id = s.id and n.partition_id = s.partition_id
  left join unnest(v_taken.ids, v_taken.partitions) t(id, partition_id) on t.id = s.id and t.partition_id = s.partition_id
  where t.id is null;
  if v_open > 0 then
    -- barrier: consumer-transaction-open
    perform rouse.raise('RS409', 'consumer_transaction_open',
      format('an open transaction of a consumer (rouse.ack_in) holds %s of queue "%s", the oldest delivered %s s ago; nothing was changed: '
        || 'commit or roll back that transaction, then try again',
        case when v_open = 1 then '1 lease' else v_open || ' leases' end, p_queue, round(v_age_ms / 1000.0, 1)),
      jsonb_build_object('leases', v_open, 'oldestLeaseAgeMs', v_age_ms));
  end if;
end $$;

-- Deletes the leases of these groups, except those that were created after take_leases and are locked.
-- Parameters: group ids. Result: nothing. Locks: the leases, with SKIP LOCKED.
create or replace function rouse.drop_leases(p_group_ids integer[]) returns void
language plpgsql
as $$
begin
  delete from rouse.leases s
  using (select o.id, o.partition_id from rouse.leases o where o.group_id = any (p_group_ids) for update skip locked) o
  where s.id = o.id and s.partition_id = o.partition_id;
end $$;
