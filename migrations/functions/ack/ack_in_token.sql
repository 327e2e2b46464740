-- ack_in by the receipt of the HTTP API: completes that one message inside a consumer's own transaction.
-- Parameters: the receipt of a message, or the leaseId of a lease that holds one message only.
-- Result: the number of completed messages, which is 1. A lost lease, a leaseId of several messages, or
--   another text raises RS409 and nothing changes.
-- Locks: as ack_in.
create or replace function rouse.ack_in(lease text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hex text;
begin
  if lease ~ '^[A-Za-z0-9_-]{48}$' then
    -- 16 bytes of lease id, 8 of partition id, 8 of seq; then a hash of the transaction id, which only the
    -- broker uses.
    v_hex := encode(decode(translate(lease, '-_', '+/'), 'base64'), 'hex');
    return rouse.ack_in(substr(v_hex, 1, 32)::uuid, ('x' || substr(v_hex, 33, 16))::bit(64)::bigint,
      ('x' || substr(v_hex, 49, 16))::bit(64)::bigint);
  end if;
  if lease ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    return rouse.ack_in(lease::uuid);
  end if;
  perform rouse.raise('RS409', 'lease_lost', 'this is neither a receipt nor a leaseId');
  return 0;
end $$;

comment on function rouse.ack_in(text) is
  'Completes a message in this transaction, by its receipt, or by the leaseId of a lease that holds one message. Raises RS409 if '
  'the lease is lost.';
