// The pages and rows that a call touches are proportional to what it returns, removes or moves. The database
// has one partition with most of the messages, and one abandoned group. The test counts pages and rows
// because other load does not change them, unlike times. ROUSE_TEST_GROWTH_MESSAGES sets the number of
// messages; all other rows are in proportion. The full size is 1000000, the default 400000.
import type pg from 'pg'
import { type Test, test } from 'tap'
import { delivery } from './measures/delivery.ts'
import { lists } from './measures/lists.ts'
import { lookups } from './measures/lookups.ts'
import { maintenance } from './measures/maintenance.ts'
import { messageLists } from './measures/message-lists.ts'
import { removals } from './measures/removals.ts'
import { unique } from './measures/unique.ts'
import type { Measure } from './support/measure.ts'
import { type SkewedDatabase, sizeFor, skewedDatabase, small } from './support/skewed-database.ts'
import { type Touched, touchedBy } from './support/touched.ts'

const large = sizeFor(Number(process.env.ROUSE_TEST_GROWTH_MESSAGES ?? 400_000))
const all: readonly Measure[] = [
  ...maintenance,
  ...removals,
  ...lists,
  ...messageLists,
  ...lookups,
  ...delivery,
  ...unique,
]
/**
 * Calls that nodes make many times a minute, and lists for operators, must be cheap even before the first
 * vacuum.
 */
const often: readonly Measure[] = [...maintenance, ...delivery, ...lists, ...messageLists]

/**
 * The most pages that a call may touch on the large database, as a multiple of its pages on the small one,
 * whose indexes are less deep.
 */
const factorMax = 2
const slackPages = 200
/** Estimated index entries per page that belong to deleted rows, before vacuum removes them. */
const deadPerPage = 20
/** The most rows of a table that a sequential scan may read, unless the measure sets `grows`. */
const scannedMax = 1_000

/** Functions without a measure, each with the reason. */
const exempt: Readonly<Record<string, string>> = {
  raise: 'ends a call with an error',
  refuse_plaintext: 'ends a push with an error',
  refuse_targets: 'ends a push with an error',
  refuse_unique: 'ends a call with an error',
  check_push: 'ends a push with an error',
  refuse_priority: 'ends a push with an error',
  grant_roles: 'runs when the schema changes',
}

test('the pages a call touches do not grow with the size of the database', async (t) => {
  const few = await skewedDatabase(t, small)
  await few.client.query('vacuum analyze')
  const baseline = await measureEach(few, all)
  await t.test('a measure runs every function of the schema', async (t) => {
    const run = new Set([...baseline.values()].flatMap(({ functions }) => functions))
    t.same(await functionsNotRun(few.client, run), [])
  })
  const many = await skewedDatabase(t, large)
  await t.test('before the first vacuum', async (t) => {
    compare(t, baseline, await measureEach(many, often), large.dead / deadPerPage)
  })
  await t.test('vacuumed and analysed', async (t) => {
    await many.client.query('vacuum analyze')
    const found = await measureEach(many, all)
    compare(t, baseline, found, 0)
    compareScans(t, found)
  })
})

async function measureEach(
  database: SkewedDatabase,
  measures: readonly Measure[],
): Promise<Map<string, Touched>> {
  const { client } = database
  await client.query(`set track_functions = 'all'`)
  await client.query(`set statement_timeout = '10s'`)
  const touched = new Map<string, Touched>()
  for (const { name, call, prepare } of measures) {
    const round = touchedBy(
      client,
      (probe) => call(probe, database),
      async (own) => prepare?.(own, database),
    )
    touched.set(name, await round.catch((error: unknown) => withoutEnd(client, name, error)))
  }
  await client.query('reset statement_timeout')
  return touched
}

/**
 * Counts a call that was cancelled at the time limit as too many pages, and lets the test measure the others.
 */
async function withoutEnd(client: pg.ClientBase, name: string, cause: unknown): Promise<Touched> {
  await client.query('rollback')
  const isCancelled = cause instanceof Error && 'code' in cause && cause.code === '57014'
  if (!isCancelled) throw new Error(`${name}: ${String(cause)}`, { cause })
  return { pages: Number.POSITIVE_INFINITY, scanned: new Map(), functions: [] }
}

function compare(
  t: Test,
  baseline: ReadonlyMap<string, Touched>,
  found: ReadonlyMap<string, Touched>,
  deadPages: number,
): void {
  for (const { name, grows } of all) {
    const now = found.get(name)
    if (now === undefined) continue
    const before = Number(baseline.get(name)?.pages)
    const most = Math.ceil(grows?.pagesMax(large) ?? factorMax * before + slackPages + deadPages)
    const because = grows === undefined ? '' : `, as ${grows.why}`
    t.ok(
      now.pages <= most,
      `${name}: ${now.pages} pages, ${before} when small, at most ${most}${because}`,
    )
  }
}

function compareScans(t: Test, found: ReadonlyMap<string, Touched>): void {
  const scans = all.flatMap(({ name, grows }) => {
    if (grows !== undefined) return []
    const tables = [...(found.get(name)?.scanned ?? [])].filter(([, rows]) => rows > scannedMax)
    return tables.map(([table, rows]) => `${name}: ${rows} rows of ${table}`)
  })
  t.same(scans, [], 'no table is read from end to end')
}

/**
 * Returns the functions that are neither run nor exempt, and those that are exempt although they run.
 * PostgreSQL does not count inlined SQL functions: they count as run if the source of another function names
 * them.
 */
async function functionsNotRun(client: pg.ClientBase, run: ReadonlySet<string>): Promise<string[]> {
  const { rows } = await client.query<{ name: string; source: string; inlined: boolean }>(
    `select p.proname as name, p.prosrc as source, l.lanname = 'sql' as inlined
     from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'rouse'::regnamespace`,
  )
  const isNamed = (name: string): boolean =>
    rows.some((other) => run.has(other.name) && other.source.includes(`rouse.${name}(`))
  const missing = rows
    .filter(({ name, inlined }) => !run.has(name) && !(inlined && isNamed(name)))
    .map(({ name }) => name)
  const needless = Object.keys(exempt).filter((name) => !missing.includes(name))
  return [
    ...missing.filter((name) => exempt[name] === undefined),
    ...needless.map((name) => `${name} is exempt without need`),
  ]
}
