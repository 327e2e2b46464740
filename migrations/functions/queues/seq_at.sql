-- The seq of the first message in a partition that was created at or after a time. Creation times never
-- decrease within a partition, so this is a binary search by primary key.
-- Parameters: partition id, its tail and head, the time.
-- Result: a seq from tail to head (head: everything is older). Locks: none.
create or replace function rouse.seq_at(p_partition_id bigint, p_tail bigint, p_head bigint, p_time timestamptz) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_low bigint := p_tail;
  v_high bigint := p_head;
  v_middle bigint;
  v_found timestamptz;
begin
  while v_low < v_high loop
    v_middle := (v_low + v_high) / 2;
    select m.created_at into v_found from rouse.messages m where m.partition_id = p_partition_id and m.seq = v_middle;
    -- A message that retention has deleted meanwhile counts as older than any requested time.
    if v_found is null or v_found < p_time then
      v_low := v_middle + 1;
    else
      v_high := v_middle;
    end if;
  end loop;
  return v_low;
end $$;
