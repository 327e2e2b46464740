-- Stores the keys of a push if none of them was seen before, which is the common case: one insert without a
-- lookup.
-- Parameters: per slot (see push_general) partition id, dedupe window in ms, head, position of its first
--   message; per message its slot, id and key; the time now.
-- Result: whether all keys were new. If not, nothing is stored, and sort_push finds the duplicates.
-- Locks: none; the caller holds the partitions, so no other call can add a key.
create or replace function rouse.remember_keys(
  p_partition_ids bigint[], p_dedup_ms bigint[], p_heads bigint[], p_starts bigint[], p_slots integer[], p_ids uuid[],
  p_keys text[], p_now timestamptz
) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_remembered integer;
  v_keys integer;
begin
  insert into rouse.dedup (partition_id, key, message_id, seq, expires_at)
  select p_partition_ids[m.slot], m.key, m.id, p_heads[m.slot] + m.n - p_starts[m.slot],
    p_now + p_dedup_ms[m.slot] * interval '1 millisecond'
  from unnest(p_slots, p_keys, p_ids) with ordinality m(slot, key, id, n)
  where m.key is not null and p_dedup_ms[m.slot] > 0
  on conflict on constraint dedup_pkey do nothing;
  get diagnostics v_remembered = row_count;
  v_keys := cardinality(p_keys);
  if v_remembered < v_keys then
    select count(*) into v_keys from unnest(p_slots, p_keys) m(slot, key) where m.key is not null and p_dedup_ms[m.slot] > 0;
  end if;
  if v_remembered < v_keys then
    -- A call that is repeated with the same ids finds the keys of its first run: these have a seq below the
    -- head, or none if the message is scheduled, and stay. The partition ids are sorted.
    delete from rouse.dedup d
    where d.partition_id = any (p_partition_ids) and d.key = any (p_keys) and d.message_id = any (p_ids)
      and d.seq >= p_heads[width_bucket(d.partition_id, p_partition_ids)];
    return false;
  end if;
  return true;
end $$;

-- Finds the duplicates among the messages of a push, by their dedupe keys.
-- Parameters: per slot partition id and dedupe window in ms; per message its slot, id and key; the time now.
-- Result: per message the id of its original: in the log, scheduled, or earlier in the same call (then the
--   stored id); null: it is none.
-- Locks: none; the caller holds the partitions, so no other call can add a key.
create or replace function rouse.find_originals(
  p_partition_ids bigint[], p_dedup_ms bigint[], p_slots integer[], p_ids uuid[], p_keys text[], p_now timestamptz
) returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return (
    select array_agg(coalesce(k.known, case when k.id <> k.first_id then k.first_id end) order by k.n)
    from (
      select m.n, m.id, rouse.message_id(d.message_id, p_partition_ids[m.slot], d.seq) as known,
        case when m.key is null or p_dedup_ms[m.slot] = 0 then m.id
          else first_value(m.id) over (partition by m.slot, m.key order by m.n) end as first_id
      from unnest(p_slots, p_keys, p_ids) with ordinality m(slot, key, id, n)
      left join lateral (
        select d.message_id, d.seq from rouse.dedup d
        where d.partition_id = p_partition_ids[m.slot] and d.key = m.key and d.expires_at > p_now and p_dedup_ms[m.slot] > 0
          and not exists (  -- the original was purged
            select from rouse.partitions p
            left join rouse.removals r on r.queue_id = p.queue_id and r.kind = 'purge' and r.phase in ('scheduled', 'tails')
            where p.id = d.partition_id and (d.seq < p.keys_from or (r.id is not null and rouse.is_key_purged(r, d))))
        offset 0
      ) d on true
    ) k);
end $$;

-- Sorts the messages of a push: new ones get an offset in their partition's log, delayed ones a due time,
-- duplicates the id of their original (see find_originals). Stores the new keys.
-- Parameters: per slot partition id, the queue's delay and dedupe window in ms, head; per message its slot,
--   then as push; the time now; the originals, if they are known already.
-- Result: arrays per message: its offset (null: not added to the log), due time and original; and whether any
--   is scheduled.
-- Locks: none; the caller holds the partitions, so no other call can add a key.
create or replace function rouse.sort_push(
  p_partition_ids bigint[], p_queue_delays_ms bigint[], p_dedup_ms bigint[], p_heads bigint[], p_slots integer[], p_ids uuid[],
  p_keys text[], p_delays_ms bigint[], p_due_at timestamptz[], p_now timestamptz,
  p_originals uuid[],
  out offsets integer[], out due_at timestamptz[], out originals uuid[], out any_scheduled boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_bad integer := (select min(d.n) from unnest(p_delays_ms) with ordinality d(delay_ms, n) where d.delay_ms < 0);
begin
  if v_bad is not null then
    perform rouse.raise('RS400', 'invalid_delay', 'a delay cannot be negative', jsonb_build_object('item', v_bad));
  end if;
  originals := p_originals;
  if originals is null and p_keys is not null then
    originals := rouse.find_originals(p_partition_ids, p_dedup_ms, p_slots, p_ids, p_keys, p_now);
  end if;
  -- A message whose due time is in the past goes straight into the log.
  select array_agg(case when d.original is null and d.due > p_now then d.due end order by d.n),
    coalesce(bool_or(d.original is null and d.due > p_now), false)
  into due_at, any_scheduled
  from (
    select m.n, m.original,
      coalesce(m.due_at, p_now + greatest(coalesce(m.delay_ms, 0), p_queue_delays_ms[m.slot]) * interval '1 millisecond') as due
    from unnest(p_slots, p_delays_ms, p_due_at, originals) with ordinality m(slot, delay_ms, due_at, original, n)
  ) d;
  select array_agg(case when p.added then p.seq_offset end order by p.n) into offsets
  from (
    select m.n, m.original is null and m.due_at is null as added,
      (count(*) filter (where m.original is null and m.due_at is null) over (partition by m.slot order by m.n))::integer - 1 as seq_offset
    from unnest(p_slots, due_at, originals) with ordinality m(slot, due_at, original, n)
  ) p;
  insert into rouse.dedup as d (partition_id, key, message_id, seq, expires_at)
  select p_partition_ids[m.slot], m.key, case when m.seq_offset is null then rouse.id_without_place(m.id) else m.id end,
    p_heads[m.slot] + m.seq_offset, p_now + p_dedup_ms[m.slot] * interval '1 millisecond'
  from unnest(p_slots, p_keys, p_ids, offsets, originals) m(slot, key, id, seq_offset, original)
  where m.key is not null and m.original is null and p_dedup_ms[m.slot] > 0
  on conflict on constraint dedup_pkey do update
  set message_id = excluded.message_id, seq = excluded.seq, expires_at = excluded.expires_at;
end $$;
