-- Stores an API key.
-- Parameters: id, name, SHA-256 of the key, grants, limits, who creates it, when it expires (null: never), whether to store it
--   only if there has never been a key.
-- Result: whether it was stored; or RS400 if there are too many live keys. A key with this id that exists already stays as it is.
-- Locks: the table, against other writers, so that the first key and the number of keys are certain.
create or replace function rouse.create_key(p_id text, p_name text, p_hash bytea, p_grants text[], p_limits jsonb,
  p_created_by text, p_expires_at timestamptz, p_only_first boolean)
returns boolean
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_keys_max constant integer := 10000;
begin
  perform rouse.raise_durability();
  perform rouse.check_name('name', p_name);
  lock table rouse.api_keys in share row exclusive mode;
  if p_only_first and exists (select from rouse.api_keys) then
    return false;
  end if;
  if (select count(*) from rouse.api_keys k
      where k.revoked_at is null and (k.expires_at is null or k.expires_at > rouse.now())) >= v_keys_max then
    perform rouse.raise('RS400', 'invalid_request', format('there are %s API keys already: revoke those that are not used', v_keys_max));
  end if;
  insert into rouse.api_keys (id, name, hash, grants, limits, created_by, created_at, expires_at)
  values (p_id, p_name, p_hash, p_grants, p_limits, p_created_by, rouse.now(), p_expires_at)
  on conflict (id) do nothing;
  return found;
end $$;

-- Ends an API key for good.
-- Parameters: id, the time from now after which it ends (null or 0: at once). Result: whether a live key had this id.
-- Locks: the row.
create or replace function rouse.revoke_key(p_id text, p_after_ms bigint)
returns boolean
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_after interval := coalesce(p_after_ms, 0) * interval '1 millisecond';
begin
  perform rouse.raise_durability();
  update rouse.api_keys k set
    revoked_at = case when v_after > interval '0' then k.revoked_at else rouse.now() end,
    expires_at = case when v_after > interval '0' then least(k.expires_at, rouse.now() + v_after) else k.expires_at end
  where k.id = p_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > rouse.now());
  return found;
end $$;

-- Records that API keys were used today.
-- Parameters: ids. Result: none. Locks: the rows that were not used today before, by id.
create or replace function rouse.mark_keys_used(p_ids text[])
returns void
language plpgsql
set lock_timeout = '700ms'
as $$
declare
  v_today date := (rouse.now() at time zone 'UTC')::date;
begin
  perform rouse.require_read_committed();
  update rouse.api_keys k set last_used_day = v_today
  where k.id in (
    select u.id from rouse.api_keys u
    where u.id = any (p_ids) and u.last_used_day is distinct from v_today
    order by u.id for no key update);
end $$;
