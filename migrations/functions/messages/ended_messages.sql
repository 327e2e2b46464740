-- Finds the messages that have ended, for requests that wait for a message to end.
-- Parameters: per message its id; the partition and seq that the id contains, or nulls; the group in which it
--   must have ended, or null for all groups up to the given group id. The id 0 means that the queue had no
--   group: then the message must have ended in all groups that exist now, at least one.
-- Result: the 1-based positions of messages that have ended: completed, dead or dropped in these groups,
--   cancelled, or removed.
-- Locks: none. One snapshot, so that a message on its way from one state to the next is not missed.
create or replace function rouse.ended_messages(
  p_ids uuid[], p_partition_ids bigint[], p_seqs bigint[], p_groups text[], p_groups_to integer[]
) returns table (n integer)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  -- barrier: ended-messages
  return query
  select i.n::integer
  from unnest(p_ids, p_partition_ids, p_seqs, p_groups, p_groups_to) with ordinality i(id, partition_id, seq, "group", groups_to, n)
  where not exists (select from rouse.scheduled s where s.message_id = i.id)
    and not exists (
      select from rouse.place_of(i.id, i.partition_id, i.seq) o
      cross join lateral (
        select p.id, p.queue_id, p.tail from rouse.partitions p where p.id = o.partition_id offset 0) p
      where not rouse.is_cancelled(p.id, o.seq)
        and rouse.is_open(p.id, p.queue_id, p.tail, o.seq, i."group", i.groups_to));
end $$;

-- Whether a message in the log has yet to end in some group.
-- Parameters: its partition, with queue and tail, and seq; the groups as in ended_messages.
-- Result: a boolean. Locks: none.
create or replace function rouse.is_open(
  p_partition_id bigint, p_queue_id integer, p_tail bigint, p_seq bigint, p_group text, p_groups_to integer
) returns boolean
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_open boolean;  -- null: there is no such group yet
begin
  select bool_or(s.status in ('leased', 'retrying') or (s.status = 'pending' and p_seq >= p_tail)) into v_open
  from rouse.groups g
  left join rouse.lanes l on l.partition_id = p_partition_id and l.group_id = g.id
  cross join lateral (select rouse.message_status(g.id, coalesce(l.next, 0), p_partition_id, p_seq) as status) s
  where g.queue_id = p_queue_id and case when p_group is not null then g.name = p_group else p_groups_to = 0 or g.id <= p_groups_to end;
  return coalesce(v_open, p_seq >= p_tail);
end $$;

-- The newest group of a queue.
-- Parameters: the queue's name. Result: its id; 0 if there is none. Locks: none.
create or replace function rouse.newest_group(p_queue text) returns integer
language plpgsql stable
as $$
begin
  -- barrier: newest-group
  return (select coalesce(max(g.id), 0) from rouse.groups g join rouse.queues q on q.id = g.queue_id where q.name = p_queue);
end $$;
