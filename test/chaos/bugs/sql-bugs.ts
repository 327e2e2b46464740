// Bugs in the SQL functions. A bug that would stop every delivery takes effect only occasionally, because
// only a subtle bug tests the checkers.
import type { Bug } from './bug.ts'

const functions = 'migrations/functions'

export const sqlBugs: readonly Bug[] = [
  {
    name: 'forget-results',
    does: 'an ack of several messages stores only the result of the first',
    replaces: [
      {
        file: `${functions}/ack/results.sql`,
        find: 'where i.result is not null and i.n <> all (p_rejected)',
        put: 'where i.n = 1 and i.result is not null and i.n <> all (p_rejected)',
      },
    ],
    caughtBy: ['results lost'],
    workloads: ['results'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'drop-acks',
    does: 'every twentieth ack is reported as accepted and not stored',
    replaces: [
      {
        file: `${functions}/ack/ack_general.sql`,
        find: 'v_bits := case when v_whole then v_bits & ~v_bits else',
        put: 'v_bits := case when v_whole then v_bits & ~v_bits when p_seqs[v_n] % 20 = 0 then v_bits else',
      },
      {
        file: `${functions}/ack/ack_lanes.sql`,
        find: '  -- barrier: ack-lanes-held',
        put: '  v_held.rests[1] := case when random() < 0.05 then ~(v_held.rests[1] & ~v_held.rests[1]) else v_held.rests[1] end;',
      },
    ],
    caughtBy: ['unexplained duplicates'],
    workloads: ['plain'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'accept-stale-acks',
    does: 'an ack with a lost lease is reported as a success',
    replaces: [
      {
        file: `${functions}/ack/ack_general.sql`,
        find: 'if false = any (v_accepted) then',
        put: 'if false then',
      },
    ],
    caughtBy: ['stale acks accepted'],
    workloads: ['slow-consumers'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'double-lease',
    does: 'a pop sometimes does not move its cursor, and the next pop takes the same messages',
    replaces: [
      {
        file: `${functions}/pop/pop_general.sql`,
        find: 'set next = v_next, lease_id',
        put: 'set next = case when v_next % 10 = 0 then l.next else v_next end, lease_id',
      },
      {
        file: `${functions}/pop/pop_lanes.sql`,
        find: 'set next = v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)], lease_id',
        put: `set next = case when v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)] % 10 = 0 then l.next
      else v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)] end, lease_id`,
      },
    ],
    caughtBy: ['overlapping leases'],
    workloads: ['plain'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'two-leases-on-a-lane',
    does: 'a leased lane is popped again',
    replaces: [
      {
        file: `${functions}/pop/pop_general.sql`,
        find: `where l.group_id = v_group_id and l.ready and l.lease_id is null and l.blocked_until is null
            and l.partition_id >= v_low`,
        put: `where l.group_id = v_group_id and l.ready and l.blocked_until is null
            and l.partition_id >= v_low`,
      },
      {
        file: `${functions}/pop/pop_lanes.sql`,
        find: 'l.ready and l.lease_id is null and l.blocked_until is null\n      and l.partition_id > p_after',
        put: 'l.ready and l.blocked_until is null\n      and l.partition_id > p_after',
      },
    ],
    caughtBy: ['two leases on a lane'],
    workloads: ['slow-consumers'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'skip-late-commits',
    does: 'a pop that drains its lane moves the cursor to a later head, and skips messages that were committed in between',
    replaces: [
      {
        file: `${functions}/pop/pop_general.sql`,
        find: '        -- barrier: pop-settling',
        put: '        perform pg_sleep(0.005);',
      },
      {
        file: `${functions}/pop/pop_general.sql`,
        find: 'set next = v_next, lease_id',
        put: `set next = case when v_next >= v_lane.head
            then (select greatest(p.head, v_next) from rouse.partitions p where p.id = v_lane_id) else v_next end, lease_id`,
      },
      {
        file: `${functions}/pop/pop.sql`,
        find: '    -- barrier: pop-lane-settling',
        put: '    perform pg_sleep(0.005);',
      },
      {
        file: `${functions}/pop/pop.sql`,
        find: 'set next = v_next, lease_id',
        put: `set next = case when v_next = v_head
      then (select p.head from rouse.partitions p where p.id = v_lane_id) else v_next end, lease_id`,
      },
      {
        file: `${functions}/pop/pop_lanes.sql`,
        find: '  -- barrier: pop-lanes-settling',
        put: '  perform pg_sleep(0.005);',
      },
      {
        file: `${functions}/pop/pop_lanes.sql`,
        find: 'set next = v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)], lease_id',
        put: `set next = case when l.partition_id = any (v_taken.drained)
      then (select p.head from rouse.partitions p where p.id = l.partition_id)
      else v_taken.nexts[width_bucket(l.partition_id, v_taken.ids)] end, lease_id`,
      },
    ],
    caughtBy: ['lost'],
    workloads: ['one-partition'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'free-keys-of-leased-messages',
    does: 'a message does not hold its unique key while a consumer has it',
    replaces: [
      {
        file: `${functions}/unique/unique_state.sql`,
        find: "when v_groups.leased then 'started'",
        put: 'when v_groups.leased then v_ended',
      },
    ],
    caughtBy: ['shared unique keys'],
    workloads: ['unique'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'reverse-pushes',
    does: 'the items of a push are stored in reverse order',
    replaces: [
      {
        file: `${functions}/push/push_general.sql`,
        find: 'm.head + m.n - v_starts[m.target], p_ids',
        put: 'm.head + v_starts[m.target + 1] - 1 - m.n, p_ids',
      },
    ],
    caughtBy: ['pushed out of order'],
    workloads: ['one-partition'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'overtake-the-failed',
    does: 'a failed message does not hold its lane, and later messages are delivered first',
    replaces: [
      {
        file: `${functions}/pop/pop_steps.sql`,
        find: "rouse.is_ordered(p_queue.ordering, p.name) and p_queue.on_failure = 'hold',",
        put: 'false,',
      },
      {
        file: `${functions}/ack/end_attempts.sql`,
        find: "v_due_at > p_now and p_lease.ordered and v_queue.on_failure = 'hold'",
        put: 'false',
      },
    ],
    caughtBy: ['out of order'],
    workloads: ['poison'],
    faults: [],
    seconds: 15,
    rate: 5,
  },
  {
    name: 'charge-none',
    does: 'an attempt whose lease expires is not counted',
    replaces: [
      {
        file: `${functions}/ack/end_attempts.sql`,
        find: "p_lease.attempt - case when p_outcome = 'retry' then",
        put: "p_lease.attempt - case when p_outcome in ('retry', 'expired') then",
      },
    ],
    caughtBy: ['wrong attempts'],
    workloads: ['slow-consumers'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'charge-the-wrong-one',
    does: 'a new message is delivered as attempt 2',
    replaces: [
      {
        file: `${functions}/pop/pop_steps.sql`,
        find: 'select p.name, greatest(l.next, p.tail), p.head, 1,',
        put: 'select p.name, greatest(l.next, p.tail), p.head, case when p.head % 10 = 0 then 2 else 1 end,',
      },
    ],
    caughtBy: ['wrong attempts'],
    workloads: ['plain'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'forget-keys',
    does: 'a dedupe key is not looked up, and a repeated push is stored twice',
    replaces: [
      {
        file: `${functions}/push/push_general.sql`,
        find: 'if v_sorted or p_transaction_ids is not null then',
        put: 'if v_sorted then',
      },
    ],
    caughtBy: ['dedup doubles'],
    workloads: ['dedup-retries'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'bury-too-late',
    does: 'a message gets one attempt more than its limit',
    replaces: [
      {
        file: `${functions}/ack/end_attempts.sql`,
        find: 'p_lease.attempt > v_queue.retry_limit)',
        put: 'p_lease.attempt > v_queue.retry_limit + 1)',
      },
    ],
    caughtBy: ['wrong dead letters'],
    workloads: ['poison'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'take-failed-for-done',
    does: 'a failed message counts as completed',
    replaces: [
      {
        file: `${functions}/ack/ack_general.sql`,
        find: "if v_status <> 'completed' then",
        put: "if v_status not in ('completed', 'failed') then",
      },
    ],
    caughtBy: ['lost'],
    workloads: ['poison'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'deliver-early',
    does: 'a delay lasts half as long as requested',
    replaces: [
      {
        file: `${functions}/push/sort_push.sql`,
        find: "p_queue_delays_ms[m.slot]) * interval '1 millisecond') as due",
        put: "p_queue_delays_ms[m.slot]) * interval '0.5 milliseconds') as due",
      },
    ],
    caughtBy: ['early deliveries'],
    workloads: ['delays'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'transact-without-ack',
    does: 'a transaction pushes, but its ack has no effect',
    replaces: [
      {
        file: `${functions}/ack/transaction.sql`,
        find: '  if p_lease_ids is not null then\n    for v in',
        put:
          '  if p_lease_ids is not null and p_seqs[1] % 5 = 0 then\n' +
          "    return query select 'ack', '{}'::integer[], null::rouse.wake_hint,\n" +
          '      null::integer, null::bigint, null::bigint, null::integer[], null::uuid[], null::integer[];\n' +
          '  elsif p_lease_ids is not null then\n    for v in',
      },
    ],
    caughtBy: ['torn transactions', 'unbalanced sums'],
    workloads: ['pipeline'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'leases-run-short',
    does: 'a lease lasts half as long as its response states',
    replaces: [
      {
        file: `${functions}/pop/pop_general.sql`,
        find: "v_now + coalesce(p_leases_ms[v_turn], v_queue.lease_ms) * interval '1 millisecond';",
        put: "v_now + coalesce(p_leases_ms[v_turn], v_queue.lease_ms) * interval '0.5 milliseconds';",
      },
      {
        file: `${functions}/pop/pop_lanes.sql`,
        find: "v_now, v_now + p_lease_ms * interval '1 millisecond'",
        put: "v_now, v_now + p_lease_ms * interval '0.5 milliseconds'",
      },
    ],
    caughtBy: ['unexplained duplicates'],
    workloads: ['slow-consumers'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'bury-the-expired',
    does: 'the messages of an expired lease are never delivered again',
    replaces: [
      {
        file: `${functions}/time/reap_step.sql`,
        find: "v_given_up := rouse.end_attempts(v, rouse.held_seqs(v.from_seq, v.unacked), 'expired', 'lease_expired',\n      'the lease expired before the message was acknowledged', null, v_now);",
        put: '',
      },
    ],
    caughtBy: ['lost'],
    workloads: ['slow-consumers'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'keep-the-lane',
    does: 'a lane stays leased after its messages failed',
    replaces: [
      {
        file: `${functions}/ack/ack_general.sql`,
        find: 'when p_ended and l.lease_id = p_lease.id then null',
        put: 'when p_ended and not p_again and l.lease_id = p_lease.id then null',
      },
    ],
    caughtBy: ['left over'],
    workloads: ['poison'],
    faults: [],
    seconds: 10,
  },
]
