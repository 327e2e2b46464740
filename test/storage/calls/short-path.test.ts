// push, pop and ack have a short path for the plain case and leave the rest to their general forms. Random
// sequences of calls run on two databases: one as it ships, and one whose push, pop and ack always take the
// general form. Every result and all tables must be equal. A failure prints the seed and the shortest
// sequence.
import {
  type AckStatus,
  ack,
  configure,
  type Lease,
  pop,
  promoteDue,
  push,
  reapExpired,
  release,
  transaction,
} from '@rouse/storage'
import fc from 'fast-check'
import { test } from 'tap'
import { demand, message, openStorage, type Storage, start } from '../support/storage.ts'
import { dumpTables } from '../support/table-dump.ts'

interface Item {
  readonly partition: number
  readonly headers: boolean
  readonly trace: boolean
  readonly key: number | undefined
  readonly delayMs: number | undefined
}

type Step =
  | { do: 'push'; items: Item[] }
  | {
      do: 'pop'
      group: string
      partition: number | undefined
      batch: number
      lanes: number
      waiters: number
      leaseMs: number | undefined
      autoAck: boolean
      after: number
      bytesMax: number | undefined
      durable: boolean
    }
  | { do: 'finish' | 'release'; lease: number; withGroup: boolean }
  | { do: 'end'; lease: number; ends: { position: number; status: AckStatus }[] }
  | { do: 'transact'; lease: number; items: Item[] }
  | { do: 'advance'; ms: number }
  | { do: 'maintain' }
  | { do: 'lose rows' }

/** Queue options. Each makes some call take its general form. */
const options = fc.constantFrom<Record<string, unknown>>(
  {},
  {},
  {},
  {},
  {},
  {},
  { delayedProcessing: 1 },
  { ttl: 3 },
  { maxWaitTimeSeconds: 3 },
  { windowBuffer: 1 },
  { maxSize: 6 },
  { maxInFlight: 2 },
  { ordering: 'none' },
  { onFailure: 'skip', retryLimit: 1 },
  { encryptionEnabled: true },
  { deadLetterQueue: false, retryLimit: 0 },
)

const seldom = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })

const mostly = <Value>(usual: Value, other: Value): fc.Arbitrary<Value> =>
  seldom(fc.constant(other)).map((found) => found ?? usual)

const item: fc.Arbitrary<Item> = fc.record({
  partition: fc.nat({ max: 2 }),
  headers: fc.boolean(),
  trace: fc.boolean(),
  key: seldom(fc.nat({ max: 3 })),
  delayMs: seldom(fc.constantFrom(0, 500)),
})
/** Half of the lists have one target, as the short path requires. */
const items = fc.oneof(
  fc.array(item, { minLength: 1, maxLength: 4 }),
  fc
    .tuple(fc.nat({ max: 2 }), fc.array(item, { minLength: 1, maxLength: 4 }))
    .map(([partition, some]) => some.map((one) => ({ ...one, partition }))),
)
const lease = fc.nat({ max: 5 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('push' as const), items }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('pop' as const),
      group: mostly('g', 'h'),
      partition: seldom(fc.nat({ max: 3 })),
      batch: fc.integer({ min: 1, max: 4 }),
      lanes: mostly(1, 2),
      waiters: mostly(1, 2),
      leaseMs: fc.constantFrom(undefined, 1_000, 5_000),
      autoAck: mostly(false, true),
      after: fc.constantFrom(0, 0, 0, 1, 2, 3),
      bytesMax: seldom(fc.constantFrom(1, 40, 100)),
      durable: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('finish' as const, 'finish' as const, 'release' as const),
      lease,
      withGroup: mostly(false, true),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      lease,
      ends: fc.array(
        fc.record({
          position: fc.nat({ max: 3 }),
          status: fc.constantFrom<AckStatus>('completed', 'failed', 'retry', 'dlq'),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
  },
  fc.record({ do: fc.constant('transact' as const), lease, items }),
  fc.record({
    do: fc.constant('advance' as const),
    ms: fc.constantFrom(1, 10, 500, 1_000, 1_000, 4_000, 61_000),
  }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('maintain' as const) }) },
  fc.record({ do: fc.constant('lose rows' as const) }),
)
const sequences = fc.tuple(
  options,
  fc.tuple(items, fc.array(step, { minLength: 10, maxLength: 30 })).map(([some, steps]): Step[] => {
    return [{ do: 'push', items: some }, ...steps]
  }),
)

const seed = Number(process.env.ROUSE_TEST_SEED ?? 1)
const calls = ['push', 'pop', 'ack'] as const

test('the short paths of push, pop and ack do what the general forms do', async (t) => {
  const shipped = await openStorage(t, 1)
  const general = await openStorage(t, 1)
  await countCalls(shipped)
  for (const name of calls) await takeGeneralForm(general, name)
  let runs = 0
  const property = fc.asyncProperty(sequences, async ([chosen, sequence]) => {
    runs += 1
    await Promise.all([clear(shipped), clear(general)])
    const results = await Promise.all([
      play(shipped, chosen, sequence),
      play(general, chosen, sequence),
    ])
    for (const [i, one] of ([{ do: 'configure' }, ...sequence] as const).entries()) {
      equal(results[0].said[i], results[1].said[i], `step ${i}, ${JSON.stringify(one)}`)
    }
    const [rows, others] = [results[0].rows, results[1].rows]
    equal(
      rows.filter((row) => !others.includes(row)).join('\n'),
      others.filter((row) => !rows.includes(row)).join('\n'),
      'the tables at the end',
    )
  })
  await fc.assert(property, {
    seed,
    numRuns: 100,
    endOnFailure: false,
    interruptAfterTimeLimit: 30_000,
  })
  t.ok(runs >= 20, `seed ${seed}, ${runs} sequences`)
  const called = await callCounts(shipped)
  for (const name of calls) {
    const all = called.get(name) ?? 0
    const share = 1 - (called.get(`${name}_general`) ?? 0) / all
    t.ok(
      share > 0.05,
      `${Math.round(100 * share)} % of ${all} calls of ${name} took its short path`,
    )
  }
})

/** Replaces a function by one that only calls its general form. */
async function takeGeneralForm({ rows }: Storage, name: string): Promise<void> {
  const [found] = await rows<{ parameters: string; result: string; passed: string }>(
    `select pg_get_function_arguments(f.oid) as parameters, pg_get_function_result(f.oid) as result,
       array_to_string(g.proargnames[1:g.pronargs], ', ') as passed
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
  chosen: Record<string, unknown>,
  sequence: readonly Step[],
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
    [0, 1, 2].map((n) => message('q', `p${n}`, 'first', { id: ids() })),
  )
  const { options: inForce } = await configure(storage.pool, { queue: 'q', options: chosen })
  said.push(numbered(inForce))
  for (const one of sequence) {
    const result = await make(storage, leases, ids, one).catch(
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
): Promise<unknown> {
  if (one.do === 'push') return push(pool, messagesOf(one.items, nextId))
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
  if (one.do === 'maintain') return [await reapExpired(pool), await promoteDue(pool)]
  if (one.do === 'lose rows')
    return rows('delete from rouse.messages where seq % 3 = 0').then(() => null)
  const chosen = leases[leases.length === 0 ? 0 : one.lease % leases.length]
  if (chosen === undefined) return null
  const { leaseId, partitionId, messages } = chosen
  switch (one.do) {
    case 'finish':
      return ack(pool, [{ leaseId }], one.withGroup ? 'g' : undefined)
    case 'release':
      return release(pool, [leaseId])
    case 'end':
      return ack(
        pool,
        one.ends.map(({ position, status }) => {
          const { seq } = messages[position % messages.length] as { seq: number }
          return { leaseId, message: { partitionId, seq }, status }
        }),
      )
    case 'transact':
      return transaction(pool, { acks: [{ leaseId }], pushes: messagesOf(one.items, nextId) })
    default:
      return one satisfies never
  }
}

function messagesOf(some: readonly Item[], nextId: () => string): ReturnType<typeof message>[] {
  return some.map(({ partition, headers, trace, key, delayMs }, n) =>
    message('q', `p${partition}`, 'x'.repeat(10 * n), {
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

/** Counts calls in all sessions, because the pool replaces a connection after a failed statement. */
async function countCalls({ rows }: Storage): Promise<void> {
  await rows(
    `do $$ begin execute format('alter database %I set track_functions = pl', current_database()); end $$`,
  )
  await rows('set track_functions = pl')
}

async function callCounts({ rows }: Storage): Promise<Map<string, number>> {
  await rows('select pg_stat_force_next_flush()')
  const found = await rows<{ name: string; calls: number }>(
    `select funcname as name, calls::float8 from pg_stat_user_functions where schemaname = 'rouse'`,
  )
  return new Map(found.map(({ name, calls: count }) => [name, count]))
}

/** Throws if the values differ: fast-check then searches for a shorter sequence. */
function equal(shipped: unknown, general: unknown, what: string): void {
  if (shipped === general) return
  throw new Error(`${what}:\n  as it ships: ${String(shipped)}\n  general form: ${String(general)}`)
}
