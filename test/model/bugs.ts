// Seeded bugs, each a reverted fix: the model must notice them.
import type pg from 'pg'
import { breakProduct, brokenFiles } from '../chaos/bugs/break-product.ts'
import type { Replacement } from '../chaos/bugs/bug.ts'

export interface ModelBug {
  readonly name: string
  readonly does: string
  readonly replaces: readonly Replacement[]
}

export const modelBugs: readonly ModelBug[] = [
  {
    name: 'deliver-cancelled-messages',
    does: 'a pop on the short path does not notice that a message was cancelled',
    replaces: [
      {
        file: 'migrations/functions/pop/pop.sql',
        find: `      and p.options_until <= greatest(l.next, p.tail)  -- the general form reads the options of messages
`,
        put: '',
      },
    ],
  },
  {
    name: 'hold-a-lane-for-a-cancelled-message',
    does: 'a failed message that is cancelled still holds its lane, and is tried again',
    replaces: [
      {
        file: 'migrations/functions/messages/cancel.sql',
        find: `delete from rouse.redeliveries r where r.partition_id = v_message.partition_id and r.seq = v_message.seq returning r.group_id`,
        put: `select r.group_id from rouse.redeliveries r where false`,
      },
    ],
  },
  {
    name: 'free-the-key-of-a-cancelled-message',
    does: 'a cancelled message loses its dedupe key, and a late attempt of its push is stored',
    replaces: [
      {
        file: 'migrations/functions/messages/cancel.sql',
        find: `  -- barrier: cancel-written
`,
        put: `  delete from rouse.dedup d
  where d.partition_id = v_message.partition_id and d.key = v_message.transaction_id and d.seq = v_message.seq;
`,
      },
    ],
  },
  {
    name: 'lose-a-released-letter',
    does: 'a redriven message that is released after retention is never delivered again',
    replaces: [
      {
        file: 'migrations/functions/ack/release.sql',
        find: ' and v_first >= v_tail',
        put: '',
      },
      {
        file: 'migrations/functions/ack/release.sql',
        find: `      and not exists (select from rouse.attempts a
        where a.partition_id = v.partition_id and a.seq >= v_first and a.seq <= v.to_seq and a.group_id = v.group_id
          and a.outcome not in ('retry', 'completed'));`,
        put: ';',
      },
    ],
  },
  {
    name: 'take-dead-letters-for-redriven',
    does: 'a dead letter that a seek delivers again escapes the age limit of its queue',
    replaces: [
      {
        file: 'migrations/functions/pop/expire_again.sql',
        find: `a.outcome = 'redriven')`,
        put: `a.outcome in ('redriven', 'dlq'))`,
      },
    ],
  },
  {
    name: 'forget-redriven-messages',
    does: 'a redriven message that comes back from its consumer is dropped for its age',
    replaces: [
      {
        file: 'migrations/functions/time/redrive.sql',
        find: `0, 'redriven', rouse.now()`,
        put: `0, 'retry', rouse.now()`,
      },
    ],
  },
  {
    name: 'take-long-numbers-for-names',
    does: 'a number of 16 or more digits is accepted as a name',
    replaces: [
      {
        file: 'apps/broker/dist/http/json-body.js',
        find: 'const value = JSON.parse(text);',
        put: `const token = /"(?:[^"\\\\]|\\\\.)*"|-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?/g;
        const isLong = (one) => !one.startsWith('"') && /\\d{16}|\\d[eE][+-]?\\d{3}/.test(one);
        const value = JSON.parse(text.replace(token, (one) => isLong(one) ? '"rouse-number-1:' + one + '"' : one));`,
      },
    ],
  },
  {
    name: 'round-long-numbers',
    does: 'a payload loses the digits that a double cannot hold',
    replaces: [
      {
        file: 'apps/broker/dist/http/json-body.js',
        find: 'keepExactTexts(text, value);',
        put: '',
      },
    ],
  },
  {
    name: 'retain-under-a-pop',
    does: 'retention removes messages that a pop is about to return, so that their leases are empty',
    replaces: [
      {
        file: 'migrations/functions/time/retain_partition.sql',
        find: 'if v_count = (select count(*) from rouse.lanes l where l.partition_id = v.id and (l.next < v_goal or l.group_id = any (v_let_go))) then',
        put: 'if true then',
      },
    ],
  },
  {
    name: 'grow-the-first-delay',
    does: 'the first retry already waits longer than the base of retryBackoff',
    replaces: [
      {
        file: 'migrations/functions/ack/end_attempts.sql',
        find: 'else b.base_ms * power(b.factor, p_attempt - 1) end)',
        put: 'else b.base_ms * power(b.factor, p_attempt) end)',
      },
    ],
  },
  {
    name: 'keep-moved-letters',
    does: 'a dead letter that was moved to another queue also stays in the dead letters',
    replaces: [
      {
        file: 'migrations/functions/ack/give_up.sql',
        find: ' and m.seq <> all (v_moved)',
        put: '',
      },
    ],
  },
  {
    name: 'refill-the-bucket',
    does: 'a delivery forgets the tokens that earlier ones took',
    replaces: [
      {
        file: 'migrations/functions/pop/rates.sql',
        find: 'select greatest(p_full_at, p_now) + ceil(',
        put: 'select p_now + ceil(',
      },
    ],
  },
  {
    name: 'leave-a-full-lane-closed',
    does: 'an ack does not open a lane that was full',
    replaces: [
      {
        file: 'migrations/functions/ack/ack_general.sql',
        find: "l.group_id = p_lease.group_id and l.blocked_until = 'infinity';",
        put: 'false;',
      },
    ],
  },
  {
    name: 'miss-the-first-ready-message',
    does: 'a list of ready messages, and a cancel by that filter, begins one message too late',
    replaces: [
      {
        file: 'migrations/functions/inspect/list_messages.sql',
        find: 'v_from := greatest(v_from, v_next, v_lane.tail);',
        put: 'v_from := greatest(v_from, v_next + 1, v_lane.tail);',
      },
    ],
  },
  {
    name: 'take-the-limit-of-the-queue',
    does: 'a failed message ignores its own retryLimit',
    replaces: [
      {
        file: 'migrations/functions/ack/end_attempts.sql',
        find: 'coalesce(v.retry_limit, v_queue.retry_limit)',
        put: 'v_queue.retry_limit',
      },
    ],
  },
  {
    name: 'forget-the-options-of-delayed-messages',
    does: 'a delayed message loses its own options when it becomes due',
    replaces: [
      {
        file: 'migrations/functions/time/promote_scheduled.sql',
        find: 'if p_options is not null then',
        put: 'if false then',
      },
    ],
  },
  {
    name: 'deliver-expired-messages',
    does: 'a message is delivered although its ttlMs has passed',
    replaces: [
      {
        file: 'migrations/functions/pop/pop_steps.sql',
        find: 'o.seq = g.seq and (o.cancelled_at is not null or o.expires_at <= p_now)',
        put: 'o.seq = g.seq and o.cancelled_at is not null',
      },
      {
        file: 'migrations/functions/pop/pop_general.sql',
        find: '(o.cancelled_at is not null or o.expires_at <= v_now)',
        put: 'o.cancelled_at is not null',
      },
    ],
  },
  {
    name: 'rotate-over-priorities',
    does: 'a pop takes partitions in turn, and messages with a priority are not first',
    replaces: [
      {
        file: 'migrations/functions/pop/pop_general.sql',
        find: 'v_in_levels := v_queue.prioritized and v_partition_id is null;',
        put: 'v_in_levels := false;',
      },
    ],
  },
  {
    name: 'replace-what-was-delivered',
    does: 'a push with a unique key replaces a message that waits for its retry',
    replaces: [
      {
        file: 'migrations/functions/unique/unique_state.sql',
        find: "bool_and(s.status = 'pending') as untouched",
        put: "bool_and(s.status in ('pending', 'retrying')) as untouched",
      },
    ],
  },
  {
    name: 'keep-the-keys-of-purged-messages',
    does: 'after a purge a unique key of a window still belongs to a message that is gone',
    replaces: [
      {
        file: 'migrations/functions/queues/manage_queue.sql',
        find: 'set purges = q.purges + 1',
        put: 'set purges = q.purges',
      },
    ],
  },
  {
    name: 'count-rows-to-another-lease',
    does: 'messages of the second lease of a pop are counted in the first',
    replaces: [
      {
        file: 'packages/storage/dist/delivery/pop.js',
        find: 'return (partitionId === lease.partitionId && leaseId === lease.leaseId && waiter === lease.demand + 1);',
        put: 'return true;',
      },
    ],
  },
  {
    name: 'keep-results-of-rejected-acks',
    does: 'an ack that is rejected stores its result all the same',
    replaces: [
      {
        file: 'migrations/functions/ack/results.sql',
        find: ' and i.n <> all (p_rejected)',
        put: '',
      },
    ],
  },
  {
    name: 'leave-results-behind',
    does: 'retention removes messages and leaves their results',
    replaces: [
      {
        file: 'migrations/functions/time/retain_partition.sql',
        find: 'delete from rouse.results r where r.partition_id = v.id and r.seq < v_from;',
        put: '',
      },
    ],
  },
  {
    name: 'lease-messages-together',
    does: 'messages that should have leases of their own share one',
    replaces: [
      {
        file: 'migrations/functions/pop/pop_general.sql',
        find: 'if p_lease_each[v_turn] then',
        put: 'if false then',
      },
    ],
  },
  {
    name: 'never-shorten-a-lease',
    does: 'an exact extension does not shorten a lease',
    replaces: [
      {
        file: 'migrations/functions/ack/extend.sql',
        find: 'case when t.exact_ms is not null then',
        put: 'case when false then',
      },
    ],
  },
  {
    name: 'accept-progress-of-ended-messages',
    does: 'a report about a message is accepted while its lease holds other messages',
    replaces: [
      {
        file: 'migrations/functions/ack/report_progress.sql',
        find: 'where rouse.bits_after(s.from_seq, s.unacked, i.seq) is not null',
        put: 'where true',
      },
    ],
  },
  {
    name: 'forget-completed-attempts',
    does: 'a plain ack of a queue with its whole history records nothing',
    replaces: [
      {
        file: 'migrations/functions/ack/ack.sql',
        find: 'and s.ordered and not s.limited and not s.recorded',
        put: 'and s.ordered and not s.limited',
      },
    ],
  },
]

export function modelBug(name: string): ModelBug {
  const bug = modelBugs.find((one) => one.name === name)
  if (bug !== undefined) return bug
  throw new RangeError(
    `unknown bug "${name}"; known: ${modelBugs.map((one) => one.name).join(', ')}`,
  )
}

const barrierLine = /^([ \t]*)-- barrier: ([a-z0-9-]+)[ \t]*$/gm

/**
 * Patches the SQL functions. In the model's database every `-- barrier: name` line is replaced by a call at
 * which a test can stop the function; the patched functions get these calls, too.
 */
export async function seedFunctions(pool: pg.Pool, { replaces }: ModelBug): Promise<void> {
  const functions = replaces.filter(({ file }) => file.endsWith('.sql'))
  for (const text of (await brokenFiles(functions)).values()) {
    await pool.query(text.replace(barrierLine, `$1perform rouse_test.barrier('$2');`))
  }
}

export function seedModules({ replaces }: ModelBug): Readonly<Record<string, string>> {
  return breakProduct(replaces.filter(({ file }) => file.endsWith('.js'))).nodeEnv ?? {}
}
