-- The identity of the cluster, and whether this database is a copy of another one. A copy that was restored
-- from a dump has the rows of rouse.cluster, but another system identifier or another name. Schedules and
-- redrives do not run in it: they would do again what the original does. After a failover to a physical
-- standby both are the same, so that a standby is not a copy.

-- The system identifier of this server.
-- Parameters: none. Result: null if this role may not read it; then only names of databases are compared.
-- Locks: none.
create or replace function rouse.system_identifier() returns bigint
language plpgsql stable
as $$
begin
  -- A separate statement: PostgreSQL checks the privilege for a whole statement, even for a branch not taken.
  if not has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    return null;
  end if;
  return (select c.system_identifier from pg_catalog.pg_control_system() c);
end $$;

-- Whether this database is a copy that was not adopted.
-- Parameters: none. Result: the answer; false until a node has joined. Locks: none.
create or replace function rouse.is_copy() returns boolean
language plpgsql stable
as $$
declare
  v rouse.cluster;
begin
  select c.* into v from rouse.cluster c;
  return coalesce(v.database_name <> current_database() or v.system_identifier <> rouse.system_identifier(), false);
end $$;

-- The database that this one is a copy of.
-- Parameters: none. Result: its name and system identifier (null if unknown), or null. Locks: none.
create or replace function rouse.copied_from() returns jsonb
language plpgsql stable
as $$
begin
  return (select jsonb_build_object('database', c.database_name, 'systemIdentifier', c.system_identifier::text)
          from rouse.cluster c where rouse.is_copy());
end $$;

-- The id under which nodes of this database work. In a copy it is derived from the id of the original and
-- from the place of the copy. So the nodes of a copy agree, and exchange no gossip with those of the
-- original. It stays the same when the copy is adopted, so that running nodes need no restart.
-- Parameters: none. Result: the id. Locks: none.
create or replace function rouse.cluster_id() returns uuid
language plpgsql stable
as $$
declare
  v_id uuid;
begin
  select c.id into v_id from rouse.cluster c;
  if not rouse.is_copy() then
    return v_id;
  end if;
  return substr(encode(sha256(convert_to(concat_ws(' ', v_id, rouse.system_identifier(), current_database()), 'UTF8')), 'hex'), 1, 32);
end $$;

-- Joins the cluster: the first node to call this records where the database is. A later node adds the system
-- identifier if the first one was not allowed to read it.
-- Parameters: none. Result: as cluster_id. Locks: the row of rouse.cluster, if it is incomplete.
create or replace function rouse.join_cluster() returns uuid
language plpgsql
as $$
declare
  v_system constant bigint := rouse.system_identifier();
begin
  perform rouse.raise_durability();
  update rouse.cluster c set database_name = current_database(), system_identifier = v_system
  where c.database_name is null or (c.database_name = current_database() and c.system_identifier is null and v_system is not null);
  return rouse.cluster_id();
end $$;

-- Makes a cluster of its own of a copy: its schedules and redrives run from now on.
-- Parameters: none. Result: the id of the new cluster; null if this database is not a copy.
-- Locks: the row of rouse.cluster.
create or replace function rouse.adopt_copy() returns uuid
language plpgsql
as $$
declare
  v_id uuid;
begin
  perform rouse.raise_durability();
  perform from rouse.cluster c for no key update;
  if not rouse.is_copy() then
    return null;
  end if;
  v_id := rouse.cluster_id();
  update rouse.cluster c set id = v_id, system_identifier = rouse.system_identifier(), database_name = current_database();
  return v_id;
end $$;
