-- A page of queues that match a filter, by name. The index on the name gives the order.
-- Parameters: the name after which the page begins (null: at the first), how many matching queues to skip,
--   the maximum number; a part of the name, the namespace and the task (null: any).
-- Result: their ids, in the order of their names. Locks: none.
create or replace function rouse.find_queues(
  p_after text, p_offset integer, p_limit integer, p_search text, p_namespace text, p_task text
) returns integer[]
language sql stable
as $$
  select array(
    select q.id from rouse.queues q
    where (p_after is null or q.name > p_after) and (p_search is null or strpos(q.name, p_search) > 0)
      and (p_namespace is null or q.namespace = p_namespace) and (p_task is null or q.task = p_task)
    order by q.name offset p_offset limit p_limit)
$$;

-- As find_queues, but only queues with one of the given names or prefixes.
-- Parameters: as find_queues; names, prefixes. Result: as find_queues. Locks: none.
create or replace function rouse.find_visible_queues(
  p_after text, p_offset integer, p_limit integer, p_search text, p_namespace text, p_task text, p_names text[], p_prefixes text[]
) returns integer[]
language sql stable
as $$
  select array(
    select q.id from rouse.queues q
    where (p_after is null or q.name > p_after) and (p_search is null or strpos(q.name, p_search) > 0)
      and (p_namespace is null or q.namespace = p_namespace) and (p_task is null or q.task = p_task)
      and (q.name = any (p_names) or exists (select from unnest(p_prefixes) x (prefix) where starts_with(q.name, x.prefix)))
    order by q.name offset p_offset limit p_limit)
$$;
