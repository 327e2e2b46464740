-- Changes of queues that `configure` alone does not make.

-- Creates a queue, or replaces all of an existing one: options that are not given get their current default,
-- a namespace or task that is not given is removed.
-- Parameters: queue, namespace, task, its options. Result: as configure. Locks: as configure.
create or replace function rouse.replace_queue(p_queue text, p_namespace text, p_task text, p_options jsonb)
returns table (queue_id integer, version bigint, options jsonb, namespace text, task text)
language plpgsql
set lock_timeout = '700ms'
as $$
#variable_conflict use_column
begin
  perform rouse.raise_durability();
  perform rouse.check_options(p_options);
  return query
  with configured as materialized (
    select * from rouse.configure(p_queue, p_namespace, p_task,
      (select jsonb_object_agg(r.name, null::text) from rouse.option_rules() r) || p_options)
  )
  select c.queue_id, c.version, c.options, p_namespace, p_task from configured c;
  -- configure holds the lock of the queue row.
  update rouse.queues q set namespace = p_namespace, task = p_task
  where q.name = p_queue and (q.namespace is distinct from p_namespace or q.task is distinct from p_task);
end $$;

-- Merges options into those of a queue, as configure does, but creates none.
-- Parameters: as configure. Result: as configure; or RS404. Locks: as configure.
create or replace function rouse.patch_queue(p_queue text, p_namespace text, p_task text, p_options jsonb)
returns table (queue_id integer, version bigint, options jsonb, namespace text, task text)
language plpgsql
set lock_timeout = '700ms'
as $$
begin
  perform rouse.raise_durability();
  if exists (select from rouse.queues q where q.name = p_queue) then
    perform rouse.check_options(p_options);
    perform rouse.lock_to_configure(p_queue, p_options ->> 'deadLetterTo', false);
  end if;
  if not exists (select from rouse.queues q where q.name = p_queue) then
    perform rouse.raise('RS404', 'not_found', format('there is no queue "%s"', p_queue));
  end if;
  -- barrier: patch-locked
  return query select * from rouse.configure(p_queue, p_namespace, p_task, p_options);
end $$;
