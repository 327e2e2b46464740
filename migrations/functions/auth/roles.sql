-- Refuses what a database role may not do. Functions for users' SQL call it; they run as the owner, so the role is the
-- one that has logged in.
-- Parameters: the verb; the queue; the consumer group of a pop (null: none).
-- Result: nothing; 42501 if the role has rows in role_grants, and none of them allows this. The error of a pop does not
--   name the queue, which the caller may not know.
-- Locks: none.
create or replace function rouse.require_role_grant(p_verb text, p_queue text, p_group text default null) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_grant text := case p_verb when 'push' then 'push:' || p_queue else p_verb end;
begin
  if not exists (select from rouse.role_grants g where g.role = session_user) then
    return;
  end if;
  if exists (
    select from rouse.role_grants g
    cross join lateral (select split_part(g."grant", ':', 1) as verb, substr(g."grant", strpos(g."grant", ':') + 1) as target) w
    -- A queue's name may contain `@`: the last one counts, and only in a grant of pop.
    cross join lateral (select
      case when w.verb = 'pop' then regexp_replace(w.target, '@[^@]*$', '') else w.target end as pattern,
      case when w.verb = 'pop' then coalesce(substring(w.target from '@([^@]*)$'), '*') else '*' end as of_group) m
    where g.role = session_user and w.verb = p_verb and m.of_group in ('*', p_group)
      and case when right(m.pattern, 1) = '*' then starts_with(p_queue, left(m.pattern, -1)) else m.pattern = p_queue end
  ) then
    return;
  end if;
  perform rouse.raise('42501', 'forbidden', format('role %s lacks the grant %s', session_user, v_grant),
    jsonb_build_object('grant', v_grant));
end $$;

-- Gives the roles of nodes and of SQL producers their privileges, as far as the roles exist. Migrations run it; run it
-- again after creating a role. A node may not change the schema, the grants of roles and the secret of nodes, and of the
-- audit log it may only add rows.
-- Parameters: none. Result: none. Locks: none.
create or replace function rouse.grant_roles() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table name;
begin
  if exists (select from pg_roles where rolname = 'rouse_producer') then
    grant usage on schema rouse to rouse_producer;
    grant execute on function rouse.enqueue(text, text, text, interval, timestamptz, text, json, text, integer, integer, bigint[], bigint, jsonb, text) to rouse_producer;
    grant execute on function rouse.enqueue(text, json, text, interval, timestamptz, text, json, text, integer, integer, bigint[], bigint, jsonb, text) to rouse_producer;
    grant execute on function rouse.enqueue(text, jsonb, text, interval, timestamptz, text, jsonb, text, integer, integer, bigint[], bigint, jsonb, text) to rouse_producer;
    grant execute on function rouse.enqueue_many(jsonb) to rouse_producer;
    grant execute on function rouse.cancel(uuid) to rouse_producer;
    grant execute on function rouse.ack_in(uuid, bigint, bigint) to rouse_producer;
    grant execute on function rouse.ack_in(text) to rouse_producer;
  end if;
  if exists (select from pg_roles where rolname = 'rouse_node') then
    grant usage on schema rouse to rouse_node;
    grant execute on all functions in schema rouse to rouse_node;
    grant select on all tables in schema rouse to rouse_node;
    grant usage, select on all sequences in schema rouse to rouse_node;
    grant insert on rouse.audit to rouse_node;
    for v_table in
      select c.relname from pg_class c
      where c.relnamespace = 'rouse'::regnamespace and c.relkind in ('r', 'p')
        and c.relname not in ('migrations', 'function_sets', 'role_grants', 'node_secret', 'audit')
    loop
      execute format('grant insert, update, delete on rouse.%I to rouse_node', v_table);
    end loop;
  end if;
end $$;
