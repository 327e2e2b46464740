-- Gives up messages: stores them as dead letters, or moves them to the queue that its deadLetterTo names. They
-- go through `scheduled`, due at once, in the caller's transaction. A push from here would lock a partition
-- while the caller holds lanes, and could deadlock with a transaction that pushes there and acks here. The
-- node polls what is due after COMMIT.
--
-- A moved message is a new message with its own id and no key. Its header `rouse-dead-letter` says where it
-- came from. It is stored as a dead letter instead if it was moved v_hops_max times already, because
-- concurrent calls of configure can close a circle; and if it or the other queue is encrypted, because an
-- encrypted payload opens only under its own queue and id.
-- Parameters: the queue, the lease that held the messages, their seqs, error code and text, the time now.
-- Result: nothing. Locks: none.
create or replace function rouse.give_up(
  p_queue rouse.queues, p_lease rouse.leases, p_seqs bigint[], p_error_code text, p_error_message text, p_now timestamptz
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_hops_max constant integer := 5;
  v_moved bigint[] := '{}';
  v_partition text;
  v_target text;
  v_group text;
begin
  if p_queue.dead_letter_to is not null
     and not coalesce((select q.encryption from rouse.queues q where q.name = p_queue.dead_letter_to), rouse.encrypts_by_default()) then
    select rouse.shown_partition(p.name) into v_partition from rouse.partitions p where p.id = p_lease.partition_id;
    -- A message without a partition gets none in the other queue, whose ordering may differ.
    v_target := coalesce(
      rouse.partition_of((select q.ordering from rouse.queues q where q.name = p_queue.dead_letter_to), v_partition),
      rouse.partition_of(rouse.resolve_options('{}') ->> 'ordering', null));
    select g.name into v_group from rouse.groups g where g.id = p_lease.group_id;
    v_moved := array(
      select m.seq from rouse.messages m
      where m.partition_id = p_lease.partition_id and m.seq = any (p_seqs) and not starts_with(m.payload, 'enc1')
        and rouse.letter_hops(m.headers) < v_hops_max);
    insert into rouse.scheduled (queue, partition, due_at, message_id, trace_id, payload, headers, origin, created_at)
    select p_queue.dead_letter_to, v_target, p_now, rouse.uuid_v7(), m.trace_id, m.payload,
      rouse.with_header(m.headers, 'rouse-dead-letter', (
        select row_to_json(h) from (
          select rouse.message_id(m.id, m.partition_id, m.seq) as id, p_queue.name as queue, v_partition as partition,
            case when v_group = '__QUEUE_MODE__' then 'default' else v_group end as "consumerGroup", p_lease.attempt as attempts,
            p_error_code as "errorCode", left(p_error_message, 1000) as error,
            to_char(p_now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "failedAt", rouse.letter_hops(m.headers) + 1 as hops
        ) h)),
      'broker', p_now
    from rouse.messages m where m.partition_id = p_lease.partition_id and m.seq = any (v_moved)
    order by m.seq;
  end if;
  -- barrier: letters-moved
  insert into rouse.dead_letters (queue_id, group_id, partition_id, seq, message_id, transaction_id, trace_id, payload,
    headers, attempts, error_code, error_message, created_at, failed_at, options)
  select p_queue.id, p_lease.group_id, m.partition_id, m.seq, rouse.message_id(m.id, m.partition_id, m.seq), m.transaction_id, m.trace_id,
    m.payload, m.headers, p_lease.attempt, p_error_code, left(p_error_message, 10000), m.created_at, p_now, rouse.options_text(o)
  from rouse.messages m
  left join rouse.message_options o on o.partition_id = m.partition_id and o.seq = m.seq
  where m.partition_id = p_lease.partition_id and m.seq = any (p_seqs) and m.seq <> all (v_moved)
  order by m.seq;
  if cardinality(v_moved) > 0 then
    update rouse.attempts a set final = 'moved'
    where a.partition_id = p_lease.partition_id and a.seq = any (v_moved) and a.group_id = p_lease.group_id
      and a.attempt = p_lease.attempt and a.ended_at = p_now;
  end if;
end $$;

-- How often a message was moved as a dead letter.
-- Parameters: its headers. Result: the number; 0 if the header does not have one. Locks: none.
create or replace function rouse.letter_hops(p_headers text) returns integer
language sql immutable
as $$
  select coalesce(case when h.hops ~ '^\d{1,6}$' then h.hops::integer end, 0) from (select p_headers::json #>> '{rouse-dead-letter,hops}' as hops) h
$$;

-- Sets one header. The texts of the others stay as they are.
-- Parameters: headers as JSON text, or null; the name and the value of the header. Result: headers. Locks: none.
create or replace function rouse.with_header(p_headers text, p_name text, p_value json) returns text
language sql immutable
as $$
  select '{' || string_agg(to_json(h.name)::text || ':' || h.value::text, ',' order by h.n) || '}'
  from (
    select e.name, e.value, e.n from json_each(coalesce(p_headers, '{}')::json) with ordinality e(name, value, n) where e.name <> p_name
    union all
    select p_name, p_value, 9223372036854775807
  ) h
$$;
