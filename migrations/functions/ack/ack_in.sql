-- Completes messages inside a consumer's own transaction, so that its effects and the acknowledgement commit
-- together. This function locks and changes only the lease; promote_ready opens the lane after COMMIT. A
-- lease cannot expire while it is locked here.
-- Parameters: the lease id, and the partition id and seq of one of its messages. Without them, the lease must
--   hold one message only.
-- Result: the number of completed messages, which is 1. A role without the grant gets 42501. A lost lease raises RS409 and nothing changes, and so
--   does a lease that holds several messages if none is named.
-- Locks: the lease rows, until the end of the user's transaction.
create or replace function rouse.ack_in(lease_id uuid, partition_id bigint default null, seq bigint default null) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v rouse.leases;
  v_bits varbit;
  v_held bigint := 0;
  v_done integer := 0;
  v_is_restricted constant boolean := exists (select from rouse.role_grants g where g.role = session_user);
begin
  -- This does not call raise_durability, because a user's transaction may have any isolation level.
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  for v in
    select s.* from rouse.leases s
    where s.id = ack_in.lease_id and (ack_in.partition_id is null or s.partition_id = ack_in.partition_id)
    order by s.partition_id
    for update
  loop
    if v.expires_at <= rouse.now() then
      continue;
    end if;
    if v_is_restricted then
      perform rouse.require_role_grant('pop', q.name, case g.name when '__QUEUE_MODE__' then 'default' else g.name end)
      from rouse.partitions p join rouse.queues q on q.id = p.queue_id join rouse.groups g on g.id = v.group_id
      where p.id = v.partition_id;
    end if;
    if ack_in.seq is null then
      v_held := v_held + bit_count(v.unacked);
      if v_held > 1 then
        perform rouse.raise('RS409', 'invalid_request',
          'the lease holds several messages: pass the receipt of the message instead of the leaseId');
      end if;
      v_bits := v.unacked & ~v.unacked;
    elsif ack_in.seq between v.from_seq and v.to_seq and get_bit(v.unacked, (ack_in.seq - v.from_seq)::integer) = 1 then
      v_bits := set_bit(v.unacked, (ack_in.seq - v.from_seq)::integer, 0);
    else
      continue;
    end if;
    v_done := v_done + (bit_count(v.unacked) - bit_count(v_bits))::integer;
    if v.recorded then
      perform rouse.record_completed(v.partition_id, v.group_id, v.attempt, v.holder, v.delivered_at,
        rouse.held_seqs(v.from_seq, v.unacked & ~v_bits), rouse.now());
    end if;
    if bit_count(v_bits) = 0 then
      delete from rouse.leases s where s.id = v.id and s.partition_id = v.partition_id;
      insert into rouse.freed (partition_id, group_id, lease_id) values (v.partition_id, v.group_id, v.id);
    else
      update rouse.leases s set unacked = v_bits where s.id = v.id and s.partition_id = v.partition_id;
      if v.limited or v.lane_limited or v.recorded then
        -- The group may pop again, or someone may wait for the end of the message, so nodes need a wake hint. No lease has this id, so promote_freed does not
        -- end one; it opens a lane that was full.
        insert into rouse.freed (partition_id, group_id, lease_id)
        values (v.partition_id, v.group_id, '00000000-0000-0000-0000-000000000000');
      end if;
    end if;
  end loop;
  if v_done = 0 then
    perform rouse.raise('RS409', 'lease_lost', 'the lease no longer holds that message');
  end if;
  return v_done;
end $$;

-- Wakes the nodes, so that a freed lane opens within milliseconds of the commit.
-- Parameters: none (trigger). Result: none. Locks: none.
create or replace function rouse.notify_freed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rouse.notify_nodes('0');
  return null;
end $$;

-- Created only if missing: replacing a trigger would wait for every open transaction that has called ack_in.
do $$
begin
  if not exists (select from pg_trigger where tgrelid = 'rouse.freed'::regclass and tgname = 'freed_notifies') then
    create trigger freed_notifies after insert on rouse.freed
    for each statement execute function rouse.notify_freed();
  end if;
end $$;

comment on function rouse.ack_in(uuid, bigint, bigint) is
  'Completes a message of a lease in this transaction: the lease''s id, and partition id and seq of the message unless the lease '
  'holds one only. Raises RS409 if the lease is lost.';
