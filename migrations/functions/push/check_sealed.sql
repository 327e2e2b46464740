-- Refuses a plain payload for an encrypted queue: a node that has no key, or does not know yet that the queue
-- is encrypted, must not store the payload. Encrypted payloads begin with enc1, which no JSON text does.
-- Parameters: per slot (see push_general) the queue id; per message its slot and its payload.
-- Result: nothing. Locks: none.
create or replace function rouse.check_sealed(p_queue_ids integer[], p_slots integer[], p_payloads text[]) returns void
language plpgsql
as $$
declare
  v record;
begin
  select q.name, m.n into v
  from unnest(p_slots, p_payloads) with ordinality m(slot, payload, n)
  join rouse.queues q on q.id = p_queue_ids[m.slot]
  where q.encryption and not starts_with(m.payload, 'enc1')
  order by m.n limit 1;
  if found then
    perform rouse.refuse_plaintext(v.name, v.n::integer);
  end if;
end $$;

-- Raises the error for a plain payload.
-- Parameters: the queue, the 1-based position of the message in its call. Result: never returns. Locks: none.
create or replace function rouse.refuse_plaintext(p_queue text, p_item integer default null) returns void
language plpgsql
as $$
begin
  perform rouse.raise('RS409', 'encryption_unavailable',
    format('queue "%s" is encrypted, and the payload is not: the node has no key (ROUSE_ENCRYPTION_KEY), or a SQL producer sent it', p_queue),
    jsonb_strip_nulls(jsonb_build_object('queue', p_queue, 'item', p_item)));
end $$;
