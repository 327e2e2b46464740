-- ack_in by what the HTTP API calls a leaseId: completes that one message inside a consumer's own transaction.
-- Parameters: the leaseId of a message; or a lease's uuid as text, for all that it still holds.
-- Result: how many messages were completed. One that is lost, or no leaseId at all, raises RS409 and nothing happens.
-- Locks: as ack_in.
create or replace function rouse.ack_in(lease text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hex text;
begin
  if lease ~ '^[A-Za-z0-9_-]{48}$' then
    -- 16 bytes of lease id, 8 of partition id, 8 of seq; then a hash of the transaction id, which is for the broker.
    v_hex := encode(decode(translate(lease, '-_', '+/'), 'base64'), 'hex');
    return rouse.ack_in(substr(v_hex, 1, 32)::uuid, ('x' || substr(v_hex, 33, 16))::bit(64)::bigint,
      ('x' || substr(v_hex, 49, 16))::bit(64)::bigint);
  end if;
  if lease ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    return rouse.ack_in(lease::uuid);
  end if;
  perform rouse.raise('RS409', 'lease_lost', 'this is no lease');
  return 0;
end $$;
