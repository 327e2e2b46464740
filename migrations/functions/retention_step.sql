-- One step of retention, by whichever node comes first: the chore's row is the fence, held for the length of the step.
-- Between steps of a round the database rests as long as the step took, so that pushes hardly notice.
-- Parameters: the node; ms between rounds; then as retain.
-- Result: as retain, and kind `wait`, the ms until the next step; no row where the step is not due or another node takes it.
-- Locks: the chore with SKIP LOCKED, then as retain.
create or replace function rouse.retention_step(
  p_holder text, p_interval_ms bigint, p_completed_ms bigint, p_dead_ms bigint, p_traces_ms bigint, p_idle_partition_ms bigint,
  p_idle_group_ms bigint, p_partitions integer, p_rows integer
) returns table (kind text, count bigint)
language plpgsql
as $$
declare
  v_chore rouse.chores;
  v_begun constant timestamptz := clock_timestamp();
  v_next bigint;
  v_passed bigint := 0;
  v_wait_ms bigint := p_interval_ms;
begin
  perform set_config('synchronous_commit', 'off', true);
  select c.* into v_chore from rouse.chores c
  where c.name = 'retention' and c.next_at <= rouse.now() for no key update skip locked;
  if not found then
    return;
  end if;
  -- barrier: retention-step-locked
  for kind, count in
    select r.kind, r.count from rouse.retain(p_completed_ms, p_dead_ms, p_traces_ms, p_idle_partition_ms, p_idle_group_ms,
      p_partitions, p_rows, v_chore.position) r
  loop
    if kind = 'next' then
      v_next := count;
    elsif kind = 'passed' then
      v_passed := v_chore.passed + count;
    elsif kind <> 'messages' and count >= p_rows then
      v_next := 9223372036854775807;  -- past every partition: only the other kinds have more
    end if;
    return next;
  end loop;
  if v_next = 0 and v_passed > 0 then
    v_wait_ms := least(p_interval_ms, 1000);
  elsif v_next <> 0 then
    v_wait_ms := ceil(1000 * extract(epoch from clock_timestamp() - v_begun));
  end if;
  update rouse.chores c
  set position = v_next, passed = case when v_next = 0 then 0 else v_passed end, steps = c.steps + 1, holder = p_holder, last_at = rouse.now(),
    next_at = rouse.now() + v_wait_ms * interval '1 millisecond'
  where c.name = 'retention';
  return query select 'wait', v_wait_ms;
end $$;
