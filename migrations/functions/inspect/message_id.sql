-- The id of a message, as users see it. A node stores a UUIDv8 for a message whose id names its place, because
-- partition and seq are known only when the message is in the log. They replace the random bits: n in 6 bits,
-- the partition id in 68 - n bits, the seq in n bits, where n is the number of bits of the seq. Every other id
-- is stored as it is. packages/protocol/src/message-id.ts does the same for pops and pushes.
-- Parameters: the stored id, the partition id, the seq (null: the message is scheduled).
-- Result: the id. Locks: none.
create or replace function rouse.message_id(p_id uuid, p_partition_id bigint, p_seq bigint) returns uuid
language plpgsql immutable
as $$
declare
  v_text constant text := p_id;
  v_seq_bits text;
  v_partition_bits text;
  v_bits text;
begin
  if substr(v_text, 15, 1) <> '8' then
    return p_id;
  end if;
  v_seq_bits := ltrim(p_seq::bit(64)::text, '0');
  v_partition_bits := ltrim(p_partition_id::bit(64)::text, '0');
  if p_seq is null or length(v_seq_bits) + length(v_partition_bits) > 68 then
    return rouse.id_without_place(p_id);
  end if;
  v_bits := length(v_seq_bits)::bit(6)::text || lpad(v_partition_bits, 68 - length(v_seq_bits), '0') || v_seq_bits;
  return substr(v_text, 1, 14) || '7' || lpad(to_hex(substr(v_bits, 1, 12)::bit(12)::integer), 3, '0')
    || lpad(to_hex(('10' || substr(v_bits, 13))::bit(64)::bigint), 16, '0');
end $$;

-- The id of a message that gets it before its place: a UUIDv8 becomes a UUIDv7.
-- Parameters: the id that a node gave. Result: the id. Locks: none.
create or replace function rouse.id_without_place(p_id uuid) returns uuid
language plpgsql immutable
as $$
begin
  return case when substr(p_id::text, 15, 1) = '8' then overlay(p_id::text placing '7' from 15 for 1)::uuid else p_id end;
end $$;
