-- works-with: 4
-- What a database role may do in its own SQL. A role with rows here may do only what they say, in the form of the
-- grants of API keys: `push:orders*`, `pop:orders@billing`. A role without rows may call everything that it may execute.
-- Only the owner of the schema writes them.
create table rouse.role_grants (
  role text collate "C" not null,
  "grant" text collate "C" not null check ("grant" ~ '^(push|pop|manage):.'),
  primary key (role, "grant")
);

-- The role of nodes: it reads and writes rows, and owns nothing. A node's login is a member of it. As with rouse_producer,
-- an administrator creates it where this login may not, and then runs `select rouse.grant_roles()`.
do $$
begin
  if not exists (select from pg_roles where rolname = 'rouse_node') then
    create role rouse_node nologin;
  end if;
exception
  when insufficient_privilege then
    raise notice 'rouse_node was not created: this login may not create roles';
  when unique_violation or duplicate_object then
    null; -- another database of this server created it meanwhile
end $$;
