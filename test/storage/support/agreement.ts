// Plays the same random calls on two databases and compares every result and all tables: one database as it
// ships, and one whose push, pop and ack always take their general form. A push that delivers its message in one
// database is a push and a pop of its partition in the other.
import { randomUUID } from 'node:crypto'
import {
  ack,
  configure,
  type DirectDemand,
  type DirectPushResult,
  type Lease,
  type NewMessage,
  pop,
  promoteDue,
  push,
  pushDirect,
  reapExpired,
  release,
  setPaused,
  transaction,
} from '@rouse/storage'
import fc from 'fast-check'
import type { Test } from 'tap'
import {
  deliveringSequences,
  type Item,
  type Sequence,
  type Step,
  sequences,
} from './random-calls.ts'
import { demand, message, openStorage, type Storage, start } from './storage.ts'
import { dumpTables } from './table-dump.ts'

export const calls = ['push_v2', 'pop', 'ack'] as const

export interface Twins {
  readonly shipped: Storage
  readonly general: Storage
  /** How many pushes delivered their messages so far. */
  readonly delivered: { count: number }
}

export async function openTwins(t: Test): Promise<Twins> {
  const shipped = await openStorage(t, 1)
  const general = await openStorage(t, 1)
  for (const name of calls) {
    if (name === 'push_v2') await pushGenerally(general)
    else await takeGeneralForm(general, name)
  }
  return { shipped, general, delivered: { count: 0 } }
}

export interface Comparison {
  readonly runs: number
  /** The shortest sequence that was found whose results differ, with the seed. */
  readonly difference: string | undefined
}

export async function compareTwins(
  { shipped, general, delivered: counter }: Twins,
  limits: {
    readonly seed: number
    readonly runsMax: number
    readonly msMax: number
    /** Stops at the first difference, instead of looking for a shorter sequence with one. */
    readonly anyDifference?: boolean
    /** Some pushes deliver their messages. */
    readonly delivers?: boolean
    /** Queue options for all sequences; otherwise each has its own. */
    readonly options?: Record<string, unknown> | undefined
  },
): Promise<Comparison> {
  let runs = 0
  const property = fc.asyncProperty(
    limits.delivers === true ? deliveringSequences : sequences,
    async (drawn) => {
      runs += 1
      const sequence = { ...drawn, options: limits.options ?? drawn.options }
      await Promise.all([clear(shipped), clear(general)])
      const delivered = new Delivered(counter)
      const results = await Promise.all([
        play(shipped, sequence, (one, demand) => delivered.push(shipped, one, demand)),
        play(general, sequence, (one, demand) => delivered.repeat(general, one, demand)),
      ]).finally(() => delivered.end())
      for (const [i, one] of ([{ do: 'configure' }, ...sequence.steps] as const).entries()) {
        equal(results[0].said[i], results[1].said[i], `step ${i}, ${JSON.stringify(one)}`)
      }
      const [rows, others] = [results[0].rows, results[1].rows]
      equal(
        rows.filter((row) => !others.includes(row)).join('\n'),
        others.filter((row) => !rows.includes(row)).join('\n'),
        'the tables at the end',
      )
    },
  )
  const found = await fc.check(property, {
    seed: limits.seed,
    numRuns: limits.runsMax,
    interruptAfterTimeLimit: limits.msMax,
    endOnFailure: limits.anyDifference === true,
  })
  if (found.counterexample === null) return { runs, difference: undefined }
  return { runs, difference: `${String(found.errorInstance)}\n${fc.defaultReportMessage(found)}` }
}

type DeliverOne = (
  one: NewMessage,
  demand: DirectDemand,
) => Promise<Pick<DirectPushResult, 'items' | 'woken' | 'lease'>>

/** Whether each push of the first database has delivered its message, for the second one. */
class Delivered {
  readonly #counter: { count: number }
  readonly #known: boolean[] = []
  #isEnded = false
  #wake = (): void => {}
  #repeated = 0

  constructor(counter: { count: number }) {
    this.#counter = counter
  }

  async push({ pool }: Storage, ...[one, demand]: Parameters<DeliverOne>): ReturnType<DeliverOne> {
    let isLeased = false
    try {
      const { items, woken, lease } = await pushDirect(pool, one, demand, undefined)
      isLeased = lease !== undefined
      return { items, woken: woken.map((hint) => ({ ...hint, except: undefined })), lease }
    } finally {
      this.#known.push(isLeased)
      if (isLeased) this.#counter.count += 1
      this.#wake()
    }
  }

  async repeat(
    { pool, rows }: Storage,
    ...[one, demand]: Parameters<DeliverOne>
  ): ReturnType<DeliverOne> {
    const n = this.#repeated
    this.#repeated += 1
    while (this.#known.length <= n && !this.#isEnded) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const { items, woken } = await push(pool, [one])
    if (this.#known[n] !== true) return { items, woken, lease: undefined }
    const [place] = await rows<{ name: string }>(
      'select name from rouse.partitions where id = $1',
      [items[0]?.partitionId],
    )
    const { leases } = await pop(pool, {
      source: { queue: one.queue, partition: place?.name },
      group: demand.group,
      demands: [{ batch: 1, partitions: 1, ...demand }],
    })
    return { items, woken, lease: leases[0] }
  }

  end(): void {
    this.#isEnded = true
    this.#wake()
  }
}

/** Replaces a function by one that only calls its general form. */
async function takeGeneralForm({ rows }: Storage, name: string): Promise<void> {
  const [found] = await rows<{ parameters: string; result: string; passed: string }>(
    `select pg_get_function_arguments(f.oid) as parameters, pg_get_function_result(f.oid) as result,
       array_to_string(array(
         select case when a.name = any (f.proargnames) then a.name else 'null' end
         from unnest(g.proargnames[1:g.pronargs]) with ordinality a(name, n)
         order by a.n), ', ') as passed
     from pg_proc f join pg_proc g on g.oid = $2::regproc where f.oid = $1::regproc`,
    [`rouse.${name}`, `rouse.${name}_general`],
  )
  if (found === undefined) throw new Error(`no function ${name}`)
  await rows(
    `create or replace function rouse.${name}(${found.parameters}) returns ${found.result} language plpgsql as $$
     begin
       return query select * from rouse.${name}_general(${found.passed});
     end $$`,
  )
}

/** Makes push_v2 call push_general or push_merged. Partitions get the same names as in the shipped form. */
async function pushGenerally({ rows }: Storage): Promise<void> {
  const [found] = await rows<{ parameters: string; result: string }>(
    `select pg_get_function_arguments(f.oid) as parameters, pg_get_function_result(f.oid) as result
     from pg_proc f where f.oid = 'rouse.push_v2'::regproc`,
  )
  const passed =
    'p_targets, p_ids, p_payloads, p_transaction_ids, p_trace_ids, p_headers, p_delays_ms, p_due_at, p_options'
  await rows(
    `create or replace function rouse.push_v2(${found?.parameters}) returns ${found?.result} language plpgsql as $$
     declare
       v_names text[] := rouse.name_partitions(p_queues, p_partitions, p_targets);
     begin
       if exists (select from unnest(p_queues, v_names) t(queue, name) group by t.queue, t.name having count(*) > 1) then
         return query select * from rouse.push_merged(p_queues, v_names, ${passed});
       else
         return query select r.*, v_names[r.target] from rouse.push_general(p_queues, v_names, ${passed}) r;
       end if;
     end $$`,
  )
}

/** Empties the tables and resets the sequences, so that the next run gets the same ids. */
async function clear({ freezeClock, rows }: Storage): Promise<void> {
  await freezeClock(start)
  const tables =
    'queues partitions messages groups lanes leases redeliveries scheduled freed attempts dead_letters dedup'
  await rows(
    tables
      .split(' ')
      .map((table) => `delete from rouse.${table};`)
      .join(' '),
  )
  await rows(
    `select setval(s.oid, 1, false) from pg_class s where s.relnamespace = 'rouse'::regnamespace and s.relkind = 'S'`,
  )
}

interface Played {
  /** The result or the error of each step, with lease ids replaced by numbers. */
  readonly said: readonly string[]
  /** Every row of every table, as text. */
  readonly rows: readonly string[]
}

async function play(
  storage: Storage,
  { options, steps }: Sequence,
  deliver: DeliverOne,
): Promise<Played> {
  const leases: Lease[] = []
  const ids = messageIds()
  const numbered = (value: unknown): string => {
    const known = [...new Set(leases.map(({ leaseId }) => leaseId))]
    return known.reduce(
      (text, id, i) => text.replaceAll(id, `lease ${i}`),
      JSON.stringify(value, (_, part: unknown) => (part instanceof Set ? [...part] : part)),
    )
  }
  const said: string[] = []
  // Create the partitions before the options are set: a short path needs an existing partition, and a queue
  // with encryption would refuse these plain payloads.
  await push(
    storage.pool,
    [0, 1, 2, 3].map((n) => message('q', partitionName(n), 'first', { id: ids() })),
  )
  const { options: inForce } = await configure(storage.pool, { queue: 'q', options })
  said.push(numbered(inForce))
  for (const one of steps) {
    const result = await make(storage, leases, ids, one, deliver).catch(
      (error: { code?: string; detail?: string }) => {
        if (error.code === undefined) throw error
        return { refused: error.code, detail: error.detail }
      },
    )
    said.push(numbered(result))
  }
  const tables = Object.entries(await dumpTables(storage.pool))
  const lines = tables.flatMap(([name, rows]) => rows.map((row) => numbered(`${name} ${row}`)))
  return { said, rows: lines }
}

async function make(
  { advanceClock, pool, rows }: Storage,
  leases: Lease[],
  nextId: () => string,
  one: Step,
  deliver: DeliverOne,
): Promise<unknown> {
  if (one.do === 'push') return push(pool, messagesOf(one.items, nextId))
  if (one.do === 'deliver') {
    const [message] = messagesOf([one.item], nextId) as [NewMessage]
    const { group, leaseMs } = one
    const result = await deliver(message, {
      leaseId: randomUUID(),
      group,
      leaseMs,
      holder: 'waiter 0',
    })
    if (result.lease !== undefined) leases.push(result.lease)
    return result
  }
  if (one.do === 'pop') {
    const source = {
      queue: 'q',
      partition: one.partition === undefined ? undefined : `p${one.partition}`,
    }
    const result = await pop(pool, {
      source,
      group: one.group,
      demands: Array.from({ length: one.waiters }, (_, i) =>
        demand({
          batch: one.batch,
          partitions: one.lanes,
          leaseMs: one.leaseMs,
          autoAck: one.autoAck,
          holder: `waiter ${i}`,
        }),
      ),
      after: String(one.after),
      durable: one.durable,
      bytesMax: one.bytesMax,
    })
    leases.push(...result.leases)
    return result
  }
  if (one.do === 'advance') return advanceClock(one.ms).then(() => null)
  if (one.do === 'maintain') {
    // Hints come in the order of the rows in their tables, which the two forms may write in different places.
    return [sorted(await reapExpired(pool)), sorted(await promoteDue(pool))]
  }
  if (one.do === 'pause') return setPaused(pool, 'q', one.paused)
  if (one.do === 'lose rows')
    return rows('delete from rouse.messages where seq % 3 = 0').then(() => null)
  if (leases.length === 0) return null
  const leaseOf = (n: number): Lease => leases[n % leases.length] as Lease
  const messageOf = (lease: Lease, position: number) => {
    const { seq } = lease.messages[position % lease.messages.length] as { seq: number }
    return { leaseId: lease.leaseId, message: { partitionId: lease.partitionId, seq } }
  }
  if (one.do === 'complete' || one.do === 'finish') {
    const items =
      one.do === 'finish'
        ? one.leases.map((lease) => ({ leaseId: leaseOf(lease).leaseId }))
        : one.held.map(({ lease, position }) => messageOf(leaseOf(lease), position))
    const { woken, ...rest } = await ack(pool, items, one.group)
    // Hints are ordered by lease id, which is random.
    return { ...rest, woken: sorted(woken) }
  }
  const chosen = leaseOf(one.lease)
  const { leaseId } = chosen
  switch (one.do) {
    case 'release':
      return release(pool, [leaseId])
    case 'end': {
      const ends = one.ends.map(({ position, status }) => ({
        ...messageOf(chosen, position),
        status,
      }))
      return ack(pool, ends)
    }
    case 'transact':
      return transaction(pool, { acks: [{ leaseId }], pushes: messagesOf(one.items, nextId) })
    default:
      return one satisfies never
  }
}

function sorted(hints: readonly object[]): string[] {
  return hints.map((hint) => JSON.stringify(hint)).toSorted()
}

function partitionName(n: number): string | undefined {
  return n === 3 ? undefined : `p${n}`
}

function messagesOf(some: readonly Item[], nextId: () => string): ReturnType<typeof message>[] {
  return some.map(({ partition, headers, trace, key, delayMs }, n) =>
    message('q', partitionName(partition), 'x'.repeat(10 * n), {
      id: nextId(),
      headers: headers ? `{"n":${n}}` : undefined,
      traceId: trace ? `trace ${n}` : undefined,
      transactionId: key === undefined ? undefined : `key ${key}`,
      delayMs,
    }),
  )
}

/** Makes message ids that are the same in both databases. */
function messageIds(): () => string {
  let count = 0
  return () => `00000000-0000-7000-8000-${String((count += 1)).padStart(12, '0')}`
}

/** Throws if the values differ: fast-check then searches for a shorter sequence. */
function equal(shipped: unknown, general: unknown, what: string): void {
  if (shipped === general) return
  throw new Error(`${what}:\n  as it ships: ${String(shipped)}\n  general form: ${String(general)}`)
}
