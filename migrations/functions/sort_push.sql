-- Sorts the messages of a push: new ones get a place in their partition's log, delayed ones a due time,
-- duplicates the id of their original (in the log, scheduled, or earlier in the same call).
-- Parameters: by target, partition id, the queue's delay and dedup window in ms; by message as push; the time now.
-- Result: arrays by message, and whether any is scheduled or a duplicate (if neither, places are not given).
-- Locks: none; the caller holds the partitions, so nobody else can add a key.
create or replace function rouse.sort_push(
  p_partition_ids bigint[], p_queue_delays_ms bigint[], p_dedup_ms bigint[], p_targets integer[], p_ids uuid[],
  p_transaction_ids text[], p_delays_ms bigint[], p_due_at timestamptz[], p_now timestamptz,
  out places integer[], out due_at timestamptz[], out originals uuid[], out any_scheduled boolean, out any_duplicate boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_bad integer;
  v_late boolean := p_delays_ms is not null or p_due_at is not null or 0 < any (p_queue_delays_ms);
begin
  any_scheduled := false;
  any_duplicate := false;
  if v_late then
    select coalesce(array_position(array_agg(d.delay_ms < 0 order by d.n), true), 0) into v_bad
    from unnest(p_delays_ms) with ordinality d(delay_ms, n);
    if v_bad > 0 then
      perform rouse.raise('RS400', 'invalid_delay', 'a delay cannot be negative', jsonb_build_object('item', v_bad));
    end if;
    -- A due time already past is no delay: the message goes straight into the log.
    select array_agg(case when d.due > p_now then d.due end order by d.n), bool_or(d.due > p_now) into due_at, any_scheduled
    from (
      select m.n, coalesce(m.due_at, p_now + greatest(coalesce(m.delay_ms, 0), p_queue_delays_ms[m.target]) * interval '1 millisecond') as due
      from rows from (unnest(p_targets), unnest(p_delays_ms), unnest(p_due_at)) with ordinality m(target, delay_ms, due_at, n)
    ) d;
  end if;

  if p_transaction_ids is not null then
    select array_agg(coalesce(k.known, case when k.id <> k.first_id then k.first_id end) order by k.n),
      bool_or(k.known is not null or k.id <> k.first_id)
    into originals, any_duplicate
    from (
      select m.n, m.id, d.message_id as known,
        case when m.key is null or p_dedup_ms[m.target] = 0 then m.id
          else first_value(m.id) over (partition by m.target, m.key order by m.n) end as first_id
      from rows from (unnest(p_targets), unnest(p_transaction_ids), unnest(p_ids)) with ordinality m(target, key, id, n)
      left join lateral (
        select d.message_id from rouse.dedup d
        where d.partition_id = p_partition_ids[m.target] and d.key = m.key and d.expires_at > p_now and p_dedup_ms[m.target] > 0
        offset 0
      ) d on true
    ) k;
  end if;

  if any_scheduled or any_duplicate then
    due_at := array(select case when m.original is null then m.due_at end
      from unnest(due_at, originals) with ordinality m(due_at, original, n) order by m.n);
  else
    return;
  end if;
  select array_agg(case when p.added then p.place end order by p.n) into places
  from (
    select m.n, m.original is null and m.due_at is null as added,
      (count(*) filter (where m.original is null and m.due_at is null) over (partition by m.target order by m.n))::integer as place
    from rows from (unnest(p_targets), unnest(due_at), unnest(originals)) with ordinality m(target, due_at, original, n)
  ) p;
end $$;
