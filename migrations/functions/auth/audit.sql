-- Adds entries to the audit log.
-- Parameters: the node; the entries, an array of objects with principal, keyId, address, verb, target, outcome, requestId, detail.
-- Result: none. Locks: none.
create or replace function rouse.write_audit(p_node text, p_entries jsonb)
returns void
language plpgsql
as $$
begin
  perform rouse.raise_durability();
  insert into rouse.audit (at, node, principal, key_id, address, verb, target, outcome, request_id, detail)
  select rouse.now(), p_node, e.principal, e."keyId", e.address, e.verb, e.target, e.outcome, e."requestId", coalesce(e.detail, '{}')
  from jsonb_to_recordset(p_entries) as e (principal text, "keyId" text, address text, verb text, target text, outcome text,
    "requestId" text, detail jsonb);
end $$;

-- Removes old entries of the audit log, the oldest first. Entries of the last day stay, whatever the caller wants, so that
-- a login that may only insert cannot remove what it has just done.
-- Parameters: the age from which entries are removed, the maximum number. Result: how many were removed.
-- Locks: the removed rows.
create or replace function rouse.prune_audit(p_older_than_ms bigint, p_rows integer)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '700ms'
as $$
declare
  v_age interval := greatest(p_older_than_ms * interval '1 millisecond', interval '1 day');
  v_removed integer;
begin
  perform rouse.require_read_committed();
  delete from rouse.audit a where a.id in (
    select o.id from rouse.audit o where o.at < rouse.now() - v_age order by o.at limit p_rows for update skip locked);
  get diagnostics v_removed = row_count;
  return v_removed;
end $$;
