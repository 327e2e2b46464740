// Bugs in the SQL functions for operators, new groups and removal, and in how these functions wait for locks.
import type { Bug } from './bug.ts'

const functions = 'migrations/functions'

export const operatorBugs: readonly Bug[] = [
  {
    name: 'forget-the-redriven',
    does: 'a redriven message that is released is skipped',
    replaces: [
      {
        file: `${functions}/ack/release.sql`,
        find: 'and bit_count(v.unacked) = v.to_seq - v_first + 1 and v_first >= v_tail',
        put: 'and bit_count(v.unacked) = v.to_seq - v_first + 1',
      },
      {
        file: `${functions}/ack/release.sql`,
        find: `      and not exists (select from rouse.attempts a
        where a.partition_id = v.partition_id and a.seq >= v_first and a.seq <= v.to_seq and a.group_id = v.group_id
          and a.outcome not in ('retry', 'completed'));`,
        put: '    ;',
      },
    ],
    caughtBy: ['lost', 'left over', 'out of order'],
    workloads: ['redrive'],
    faults: [],
    seconds: 60,
  },
  {
    name: 'deliver-the-cancelled',
    does: 'a pop does not look for cancelled messages',
    replaces: [
      {
        file: `${functions}/messages/cancel.sql`,
        find: 'set options_until = greatest(p.options_until, v_message.seq + 1)',
        put: 'set options_until = p.options_until',
      },
    ],
    caughtBy: ['cancelled and delivered'],
    workloads: ['cancels'],
    faults: [],
    seconds: 20,
  },
  {
    name: 'free-the-keys-of-the-cancelled',
    does: 'a cancel forgets the dedupe key of its message, and a repeated push is stored again',
    replaces: [
      {
        file: `${functions}/messages/cancel.sql`,
        find: '  -- barrier: cancel-written\n',
        put: `  delete from rouse.dedup d
  where d.partition_id = v_message.partition_id and d.key = v_message.transaction_id and d.seq = v_message.seq;
`,
      },
    ],
    caughtBy: ['dedup doubles'],
    workloads: ['cancels'],
    faults: [],
    seconds: 20,
  },
  {
    name: 'lose-moved-letters',
    does: 'deadLetterTo sometimes neither moves a given-up message nor stores it as a dead letter',
    replaces: [
      {
        file: `${functions}/ack/give_up.sql`,
        find: 'and m.seq = any (v_moved)\n    order by m.seq;',
        put: 'and m.seq = any (v_moved) and m.seq % 3 <> 0\n    order by m.seq;',
      },
    ],
    caughtBy: ['wrong dead letters', 'lost'],
    workloads: ['letters'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'double-moved-letters',
    does: 'deadLetterTo sometimes moves a given-up message twice',
    replaces: [
      {
        file: `${functions}/ack/give_up.sql`,
        find: 'and m.seq = any (v_moved)\n    order by m.seq;',
        put: `and m.seq = any (v_moved)
      union all
      select p_queue.dead_letter_to, v_target, p_now, rouse.uuid_v7(), m.trace_id, m.payload,
        rouse.with_header(m.headers, 'rouse-dead-letter',
          json_build_object('queue', p_queue.name, 'consumerGroup', 'default', 'attempts', p_lease.attempt)),
        'broker', p_now
      from rouse.messages m where m.partition_id = p_lease.partition_id and m.seq = any (v_moved) and m.seq % 3 = 0;`,
      },
    ],
    caughtBy: ['letters lost or doubled'],
    workloads: ['letters'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'lowest-priority-first',
    does: 'a pop takes the lowest of the priorities above 0 first',
    replaces: [
      {
        file: `${functions}/pop/pop_general.sql`,
        find: 'where (i >= v_level_end) is not true order by i);',
        put: 'where (i >= v_level_end) is not true order by i desc);',
      },
    ],
    caughtBy: ['delivered before a higher priority'],
    workloads: ['priority'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'remove-the-unconsumed',
    does: 'a message that is old enough is removed even if a group has not completed it',
    replaces: [
      {
        file: `${functions}/time/retain_partition.sql`,
        find: 'tail := greatest(tail, least(coalesce(v.held_next, v.next), held_from,',
        put: 'tail := greatest(tail, least(held_from,',
      },
    ],
    caughtBy: ['lost'],
    workloads: ['retention'],
    faults: [],
    seconds: 20,
  },
  {
    name: 'begin-too-late',
    does: 'a group that subscribes to all messages gets only new ones',
    replaces: [
      {
        file: `${functions}/queues/subscribe.sql`,
        find: 'case when p_from is null then p.tail',
        put: 'case when p_from is null then p.head',
      },
    ],
    caughtBy: ['lost'],
    workloads: ['new-groups'],
    faults: [],
    seconds: 40,
  },
  {
    name: 'seek-in-vain',
    does: 'a seek back does not move the group',
    replaces: [
      {
        file: `${functions}/queues/seek.sql`,
        find: 'set next = p.seq, ready = p.seq < p.head',
        put: 'set next = greatest(p.seq, l.next), ready = greatest(p.seq, l.next) < p.head',
      },
    ],
    caughtBy: ['lost'],
    workloads: ['purge'],
    faults: [],
    seconds: 20,
  },
  {
    name: 'purge-all-but-one',
    does: 'a purge leaves the last message of each partition',
    replaces: [
      {
        file: `${functions}/queues/manage_queue.sql`,
        find: 'set tail = p.head, keys_from = p.head where',
        put: 'set tail = greatest(p.tail, p.head - 1), keys_from = p.head where',
      },
    ],
    caughtBy: ['unexpected'],
    workloads: ['purge'],
    faults: [],
    seconds: 30,
    rate: 3,
  },
  {
    name: 'promote-behind-a-lock',
    does: 'promotion waits without limit for a queue whose row is locked, so the messages of all queues wait',
    replaces: [
      {
        file: `${functions}/time/promote_scheduled.sql`,
        find: "set lock_timeout = '10ms'",
        put: 'set lock_timeout = 0',
      },
    ],
    caughtBy: ['hostile neighbours'],
    workloads: ['sql-producers', 'delays'],
    faults: ['locked-queue', 'locked-queue', 'locked-queue'],
    seconds: 60,
    rate: 0.3,
  },
  {
    name: 'wait-for-consumers',
    does: 'an operator call holds locks on all partitions while it waits for an open transaction of a consumer',
    replaces: [
      {
        file: `${functions}/ack/consumer_transactions.sql`,
        find: '  perform rouse.take_leases(p_queue, p_group_ids, true);',
        put: '',
      },
      {
        file: `${functions}/ack/consumer_transactions.sql`,
        find: '    order by s.id, s.partition_id\n    for update skip locked',
        put: '    order by s.id, s.partition_id\n    for update',
      },
      {
        file: `${functions}/queues/seek.sql`,
        find: "set lock_timeout = '700ms'",
        put: 'set lock_timeout = 0',
      },
      {
        file: `${functions}/queues/manage_queue.sql`,
        find: "rouse.purge(p_queue text) returns bigint\nlanguage plpgsql\nset lock_timeout = '700ms'",
        put: 'rouse.purge(p_queue text) returns bigint\nlanguage plpgsql\nset lock_timeout = 0',
      },
    ],
    caughtBy: ['hostile neighbours'],
    workloads: ['purge'],
    faults: ['open-ack-in', 'open-ack-in', 'open-ack-in'],
    seconds: 60,
    rate: 0.5,
  },
]
