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
        find: `      and p.options_until <= greatest(l.next, p.tail)  -- the general form skips cancelled messages
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
          and a.outcome <> 'retry');`,
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
