-- Finds the messages that acks name by transaction id. It only reads: a later ack checks the lease again.
-- Parameters: per name the lease id, the partition id and the transaction id, which must be a stored one.
-- Result: the names that were found, each with its seq. A name may occur twice, with the same seq.
-- Locks: none.
create or replace function rouse.find_held(p_lease_ids uuid[], p_partition_ids bigint[], p_transaction_ids text[])
returns table (lease_id uuid, partition_id bigint, transaction_id text, seq bigint)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now constant timestamptz := rouse.now();
  v_found integer;
begin
  -- Within the dedupe window the key leads to its message.
  return query
  select i.lease_id, i.partition_id, i.key, d.seq
  from unnest(p_lease_ids, p_partition_ids, p_transaction_ids) i(lease_id, partition_id, key)
  cross join lateral (
    select s.from_seq, s.unacked from rouse.leases s
    where s.id = i.lease_id and s.partition_id = i.partition_id and s.expires_at > v_now offset 0) s
  cross join lateral (
    select d.seq from rouse.dedup d where d.partition_id = i.partition_id and d.key = i.key offset 0) d
  where rouse.bits_after(s.from_seq, s.unacked, d.seq) is not null and d.seq is not null
    and exists (select from rouse.messages m
      where m.partition_id = i.partition_id and m.seq = d.seq and m.transaction_id = i.key);
  get diagnostics v_found = row_count;
  if v_found = cardinality(p_lease_ids) then
    return;
  end if;
  -- Otherwise all messages of the leases are read, once per lease.
  return query
  select s.id, s.partition_id, m.transaction_id, m.seq
  from (select distinct i.lease_id, i.partition_id from unnest(p_lease_ids, p_partition_ids) i(lease_id, partition_id)) i
  cross join lateral (
    select s.id, s.partition_id, s.from_seq, s.unacked from rouse.leases s
    where s.id = i.lease_id and s.partition_id = i.partition_id and s.expires_at > v_now offset 0) s
  cross join lateral unnest(rouse.held_seqs(s.from_seq, s.unacked)) h(seq)
  cross join lateral (
    select m.seq, m.transaction_id from rouse.messages m
    where m.partition_id = s.partition_id and m.seq = h.seq offset 0) m
  where m.transaction_id = any (p_transaction_ids)
  order by m.seq desc;
end $$;
