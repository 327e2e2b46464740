-- Runs one step of retention. The first node to lock the row `retention` of rouse.chores runs the step, and
-- holds that lock during the step. There are four jobs, each a row of rouse.chores: `retention`
-- (partitions), `dedup`, `unique` (keys) and `history`. The job that is overdue longest runs first. The pause after a step is
-- as long as the step took, so that pushes are hardly affected.
-- Parameters: the node; ms between rounds; then as retain.
-- Result: as retain_partitions, retain_keys, retain_unique or retain_history; kind `let_go`, the number of groups that have
--   stopped retaining messages (see idle_groups.sql) and were not reported yet; and kind `wait`, the ms until
--   the next step of any job. No row if no job is due or another node runs a step.
-- Locks: the row `retention` with SKIP LOCKED, then as the function of its job.
create or replace function rouse.retention_step(
  p_holder text, p_interval_ms bigint, p_completed_ms bigint, p_dead_ms bigint, p_traces_ms bigint, p_idle_partition_ms bigint,
  p_idle_group_ms bigint, p_partitions integer, p_rows integer
) returns table (kind text, count bigint)
language plpgsql
as $$
declare
  v_chores constant text[] := '{retention,dedup,unique,history}';
  v_again_ms constant bigint := 1000;      -- the pause after a round that skipped something
  v_turns_max constant integer := 20;      -- the most steps in a row for one partition
  v_rest_ms_max constant bigint := 3600000;
  v_keys_per_page constant integer := 4;   -- if a sweep deletes fewer, the next pause is longer
  v_chore rouse.chores;
  v_begun constant timestamptz := clock_timestamp();
  v_now constant timestamptz := rouse.now();
  v_down interval;
  v_result jsonb;
  v_next bigint;
  v_wait_ms bigint;
begin
  perform rouse.require_read_committed();
  perform set_config('synchronous_commit', 'off', true);
  perform from rouse.chores c where c.name = any (v_chores) and c.next_at <= v_now;
  if not found then
    return;
  end if;
  perform from rouse.chores c where c.name = 'retention' for no key update skip locked;
  if not found then
    return;
  end if;
  -- This must be a new statement, because another node may have run the step before this call got the lock.
  select c.* into v_chore from rouse.chores c
  where c.name = any (v_chores) and c.next_at <= v_now order by c.next_at limit 1;
  if not found then
    return;
  end if;
  -- barrier: retention-step-locked
  if v_chore.name = 'retention' then
    if v_chore.position = 0 then
      v_down := v_now - v_chore.last_at - p_interval_ms * interval '1 millisecond';
      perform rouse.watch_idle_groups(p_idle_group_ms, case when v_down > interval '1 hour' then v_down else interval '0' end);
    end if;
    select jsonb_object_agg(r.kind, r.count) into v_result
    from rouse.retain_partitions(p_completed_ms, p_idle_partition_ms, p_idle_group_ms is not null, p_partitions, p_rows, v_chore.position) r;
  elsif v_chore.name = 'dedup' then
    select jsonb_object_agg(r.kind, r.count) into v_result from rouse.retain_keys(p_rows, v_chore.position) r;
  elsif v_chore.name = 'unique' then
    select jsonb_object_agg(r.kind, r.count) into v_result from rouse.retain_unique(p_rows, v_chore.position) r;
  else
    select jsonb_object_agg(r.kind, r.count) into v_result from rouse.retain_history(p_dead_ms, p_traces_ms, p_rows) r;
  end if;
  v_next := (v_result->>'next')::bigint;
  v_chore.passed := v_chore.passed + coalesce((v_result->>'passed')::bigint, 0);
  v_chore.gone := v_chore.gone + coalesce((v_result->>'dedup')::bigint, (v_result->>'unique')::bigint, 0);
  v_chore.turns := case when v_next <> 0 and v_next = v_chore.position then v_chore.turns + 1 else 0 end;
  if v_chore.turns >= v_turns_max then
    -- The other partitions get their turn. The next round starts soon, because this partition counts as
    -- skipped.
    v_next := case when v_next < 0 then 1 else v_next + 1 end;
    v_chore.turns := 0;
    v_chore.passed := v_chore.passed + 1;
  end if;
  if v_next <> 0 then
    v_wait_ms := ceil(1000 * extract(epoch from clock_timestamp() - v_begun));
  else
    v_wait_ms := p_interval_ms;
    if v_chore.name in ('dedup', 'unique') then
      v_wait_ms := case when v_chore.gone >= v_keys_per_page * (v_result->>'pages')::bigint then v_chore.rest_ms / 2 else v_chore.rest_ms * 2 end;
      v_wait_ms := greatest(p_interval_ms, least(v_wait_ms, v_rest_ms_max));
      v_chore.rest_ms := v_wait_ms;
    elsif v_chore.passed > 0 then
      v_wait_ms := least(p_interval_ms, v_again_ms);
    end if;
    v_chore.passed := 0;
    v_chore.gone := 0;
  end if;
  update rouse.chores c
  set position = v_next, passed = v_chore.passed, gone = v_chore.gone, rest_ms = v_chore.rest_ms, turns = v_chore.turns,
    steps = c.steps + 1, holder = p_holder, last_at = v_now, next_at = rouse.now() + v_wait_ms * interval '1 millisecond'
  where c.name = v_chore.name;
  return query select r.key, r.value::bigint from jsonb_each_text(v_result) r;
  return query select 'let_go', count(*) from rouse.idle_groups i where i.let_go_at is not null and i.warned_at is null;
  return query select 'wait', greatest(0, ceil(1000 * extract(epoch from min(c.next_at) - rouse.now()))::bigint)
    from rouse.chores c where c.name = any (v_chores);
end $$;
