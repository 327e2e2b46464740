-- Deletes expired dedupe keys in a sweep over the table's pages. There is no index by expiry: a BRIN index
-- stops helping once vacuumed space is reused, and a btree would slow down every push with a key, which
-- includes every push of the client. A sweep reads all keys of the table, so retention_step pauses between
-- sweeps until enough keys have expired.
-- Parameters: the maximum number of rows, the page to continue at.
-- Result: kinds `dedup` (keys deleted), `pages` (of the whole table), `next` (the page to continue at, 0 when
--   the sweep is complete), `passed` (chunks that were skipped because a key was locked for too long).
-- Locks: the expired keys, for at most 50 ms plus the time for one chunk of pages. The call waits at most
--   v_lock_ms_max for a key that a push is renewing.
create or replace function rouse.retain_keys(p_rows integer, p_page bigint) returns table (kind text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_indexscan = off set enable_indexonlyscan = off
set enable_bitmapscan = off
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_ends constant timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_lock_ms_max constant integer := 30;
  v_chunk constant integer := 32;  -- pages; about 2,000 keys
  v_end constant bigint := p_page + 60 * v_chunk;  -- each chunk is a subtransaction, and PostgreSQL caches 64 of them
  v_pages constant bigint := pg_relation_size('rouse.dedup') / current_setting('block_size')::integer;
  v_page bigint := p_page;
  v_gone bigint := 0;
  v_count bigint;
  v_passed bigint := 0;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform set_config('lock_timeout', v_lock_ms_max::text, true);
  while v_page < least(v_pages, v_end) loop
    begin
      -- The delete itself has the condition. If a push renews a key while the delete waits for its row,
      -- PostgreSQL checks the condition again, and the key stays.
      delete from rouse.dedup d
      where d.ctid >= format('(%s,0)', v_page)::tid and d.ctid < format('(%s,0)', v_page + v_chunk)::tid and d.expires_at <= v_now;
      get diagnostics v_count = row_count;
      v_gone := v_gone + v_count;
    exception when lock_not_available then
      v_passed := v_passed + 1;
    end;
    -- barrier: retain-keys-chunk
    v_page := v_page + v_chunk;
    exit when v_gone >= p_rows or clock_timestamp() > v_ends;
  end loop;
  return query values ('dedup', v_gone), ('pages', v_pages), ('next', case when v_page < v_pages then v_page else 0 end), ('passed', v_passed);
end $$;
