-- Deletes unique keys that no message will hold again, in a sweep over the table's pages. Keys of messages that
-- have ended stay as long as the messages: a seek or a redrive can open those again.
-- Parameters: the maximum number of rows, the page to continue at.
-- Result: kinds `unique` (keys deleted), `pages` (of the whole table), `next` (the page to continue at, 0 when the
--   sweep is complete).
-- Locks: the keys that it deletes, with SKIP LOCKED, because it has no order of keys; for at most 50 ms plus the
--   time for one chunk of pages.
create or replace function rouse.retain_unique(p_rows integer, p_page bigint) returns table (kind text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_ends constant timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_chunk constant integer := 2;  -- pages; about 150 keys, each of which takes several lookups
  v_pages constant bigint := pg_relation_size('rouse.unique_keys') / current_setting('block_size')::integer;
  v_page bigint := p_page;
  v_gone bigint := 0;
  v_count bigint;
  v_keys tid[];
begin
  perform set_config('synchronous_commit', 'off', true);
  while v_page < v_pages loop
    v_keys := array(
      select k.ctid from rouse.unique_keys k
      where k.ctid >= format('(%s,0)', v_page)::tid and k.ctid < format('(%s,0)', v_page + v_chunk)::tid
        and (rouse.unique_state(k, v_now)).state = 'free'
      for update skip locked);
    -- barrier: retain-unique-locked
    -- A new statement: a push may have taken the key before it was locked, and only now its message is visible.
    delete from rouse.unique_keys k where k.ctid = any (v_keys) and (rouse.unique_state(k, v_now)).state = 'free';
    get diagnostics v_count = row_count;
    v_gone := v_gone + v_count;
    v_page := v_page + v_chunk;
    exit when v_gone >= p_rows or clock_timestamp() > v_ends;
  end loop;
  return query values ('unique', v_gone), ('pages', v_pages), ('next', case when v_page < v_pages then v_page else 0 end);
end $$;
