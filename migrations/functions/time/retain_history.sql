-- Deletes old dead letters, attempts, traces, and messages that were cancelled while they were scheduled,
-- oldest first.
-- Parameters: ms to keep dead letters, attempts and cancelled messages; ms to keep traces; the maximum number of rows of each
--   kind (never more than 2,000).
-- Result: the number deleted of kinds `dead_letters`, `attempts` and `traces`; kind `next` is 1 if there may
--   be more to delete, otherwise 0.
-- Locks: those rows, with SKIP LOCKED, because a redrive may be moving a dead letter.
create or replace function rouse.retain_history(p_dead_ms bigint, p_traces_ms bigint, p_rows integer)
returns table (kind text, count bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_dead_at constant timestamptz := rouse.now() - p_dead_ms * interval '1 millisecond';
  v_traced_at constant timestamptz := rouse.now() - p_traces_ms * interval '1 millisecond';
  v_rows constant integer := least(p_rows, 2000);
  v_letters bigint;
  v_attempts bigint;
  v_traces bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform set_config('lock_timeout', '30', true);
  delete from rouse.dead_letters o where o.id = any (array(
    select d.id from rouse.dead_letters d where d.failed_at <= v_dead_at order by d.failed_at limit v_rows for update skip locked));
  get diagnostics v_letters = row_count;
  -- The mark of a redriven message exempts it from its queue's age limits, so the mark stays as long as the
  -- message.
  delete from rouse.attempts o where o.id = any (array(
    select a.id from rouse.attempts a
    where a.ended_at <= v_dead_at and not (a.outcome = 'redriven'
      and exists (select from rouse.messages m where m.partition_id = a.partition_id and m.seq = a.seq))
    order by a.ended_at limit v_rows for update skip locked));
  get diagnostics v_attempts = row_count;
  delete from rouse.cancelled o where o.id = any (array(
    select c.id from rouse.cancelled c where c.cancelled_at <= v_dead_at order by c.cancelled_at limit v_rows for update skip locked));
  delete from rouse.traces o where o.id = any (array(
    select t.id from rouse.traces t where t.created_at <= v_traced_at order by t.created_at limit v_rows for update skip locked));
  get diagnostics v_traces = row_count;
  return query values ('dead_letters', v_letters), ('attempts', v_attempts), ('traces', v_traces),
    ('next', (greatest(v_letters, v_attempts, v_traces) >= v_rows)::integer::bigint);
end $$;
