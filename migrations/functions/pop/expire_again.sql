-- The age limit of redeliveries: ttl and maxWaitTimeSeconds of the queue, and ttlMs of the message, apply to
-- them as to fresh messages.

-- The time from which a message is too old to be redelivered. A redriven message has no such time: an
-- operator requested its delivery. It is also no longer a dead letter, so dropping it would lose it. A
-- redriven message has an attempt with outcome `redriven`. No other sign will do: a message that a seek
-- delivers again, and that is released then, has recorded attempts and attempt number 0 as well.
-- Parameters: the redelivery, its queue. Result: the time; null if age does not matter. Locks: none.
create or replace function rouse.ends_at(p rouse.redeliveries, p_queue rouse.queues) returns timestamptz
language sql stable
as $$
  select least(o.expires_at,
    m.created_at + least(nullif(p_queue.ttl_ms, 0), nullif(p_queue.wait_ms_max, 0)) * interval '1 millisecond' + interval '1 microsecond')
  from rouse.messages m
  left join rouse.message_options o on o.partition_id = p.partition_id and o.seq = p.seq
  where m.partition_id = p.partition_id and m.seq = p.seq
    and not exists (
      select from rouse.attempts a
      where a.partition_id = p.partition_id and a.seq = p.seq and a.group_id = p.group_id and a.outcome = 'redriven')
$$;

-- Deletes redeliveries that are too old. As for fresh messages that are too old, no attempt is recorded and
-- no dead letter is created. The message stays in the log until retention removes it.
-- Parameters: the queue, group and partition, the first seq to check, the time now.
-- Result: nothing. A call checks at most v_rows_max rows, because all later rows may be young enough to keep.
-- Locks: none beyond the lane, which the caller holds.
create or replace function rouse.expire_again(
  p_queue rouse.queues, p_group_id integer, p_partition_id bigint, p_seq bigint, p_now timestamptz
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_rows_max constant integer := 100;
begin
  delete from rouse.redeliveries r
  where r.partition_id = p_partition_id and r.group_id = p_group_id
    and r.seq = any (array(
      select o.seq from rouse.redeliveries o
      where o.partition_id = p_partition_id and o.group_id = p_group_id and o.seq >= p_seq
      order by o.seq limit v_rows_max))
    and rouse.ends_at(r, p_queue) <= p_now;
end $$;
