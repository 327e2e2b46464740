-- Which partitions are ordered. A queue with ordering `keyed` stores its independent messages, those without a
-- partition, in a partition with a reserved name. Reserved names begin with U+001F, which check_name refuses,
-- and are shown as null. In other queues a message without a partition goes to `Default`.

-- The partition of the independent messages of a queue.
-- Parameters: none. Result: its name. Locks: none.
create or replace function rouse.independent_partition() returns text
language sql immutable
as $$
  select chr(31) || '0'
$$;

-- Whether a partition is delivered in order, one lease at a time.
-- Parameters: the ordering of its queue, its name. Result: a boolean. Locks: none.
create or replace function rouse.is_ordered(p_ordering text, p_partition text) returns boolean
language sql immutable
as $$
  select p_ordering = 'partition' or (p_ordering = 'keyed' and not starts_with(p_partition, chr(31)))
$$;

-- The name of a partition for users.
-- Parameters: its name. Result: the name, null if it is reserved. Locks: none.
create or replace function rouse.shown_partition(p_partition text) returns text
language sql immutable
as $$
  select case when not starts_with(p_partition, chr(31)) then p_partition end
$$;

-- The partition that a message is stored in.
-- Parameters: the ordering of its queue (null: no such queue), the partition that the producer named or null.
-- Result: a name; null if the producer named none and there is no such queue. Locks: none.
create or replace function rouse.partition_of(p_ordering text, p_partition text) returns text
language sql immutable
as $$
  select coalesce(p_partition, case p_ordering when 'keyed' then chr(31) || '0' when 'partition' then 'Default' when 'none' then 'Default' end)
$$;

-- The partitions of the targets of a push, some of which name none. Creates missing queues, because their
-- ordering decides.
-- Parameters: parallel arrays of queue and partition names; the target of each message.
-- Result: names, in the order of the targets. Two targets may now be the same partition.
-- Locks: the rows of queues that it creates.
create or replace function rouse.name_partitions(p_queues text[], p_partitions text[], p_targets integer[]) returns text[]
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_names text[];
begin
  for v_try in 1..2 loop
    v_names := array(
      select rouse.partition_of((select q.ordering from rouse.queues q where q.name = t.queue), t.partition)
      from unnest(p_queues, p_partitions) with ordinality t(queue, partition, n) order by t.n);
    if array_position(v_names, null) is null then
      return v_names;
    end if;
    perform rouse.create_queues(p_queues, p_targets);
  end loop;
  perform rouse.raise('RS001', 'retry', 'a queue was deleted during a push');
  return null;
end $$;
