// Measures the pages and rows that a call touches, including all statements inside its functions, and the
// functions that it runs. The call is rolled back.
import type { Executor, Statement } from '@rouse/storage'
import type pg from 'pg'

export interface Touched {
  readonly pages: number
  /** Rows read by sequential scans, by table. */
  readonly scanned: ReadonlyMap<string, number>
  /** The functions that ran, by the counters of PostgreSQL, and those that the statement names. */
  readonly functions: readonly string[]
}

/** Runs each statement under EXPLAIN. Works as a pool and as an executor. */
export type Probe = Executor & pg.Pool

const roundsMax = 3

/** Returns the minimum of a few rounds: the first ones also read the catalogue, plan, and mark dead rows. */
export async function touchedBy(
  client: pg.ClientBase,
  call: (probe: Probe) => Promise<unknown>,
  prepare: (client: pg.ClientBase) => Promise<unknown> = async () => {},
): Promise<Touched> {
  const rounds: Touched[] = []
  while (rounds.length < roundsMax) {
    await client.query('begin')
    await prepare(client)
    const before = await counters(client)
    const { pages, text } = await explained(client, call)
    const after = await counters(client)
    await client.query('rollback')
    rounds.push({
      pages,
      scanned: grown(before.scanned, after.scanned),
      functions: [...grown(before.calls, after.calls).keys(), ...namedIn(text)],
    })
  }
  return rounds.reduce((least, round) => (round.pages < least.pages ? round : least))
}

interface Counters {
  readonly scanned: ReadonlyMap<string, number>
  readonly calls: ReadonlyMap<string, number>
}

/**
 * Reads the counters of this transaction: rows per table read by sequential scans, and calls per function.
 */
async function counters(client: pg.ClientBase): Promise<Counters> {
  const tables = await client.query<[string, number]>({
    text: `select relname, seq_tup_read::float8 from pg_stat_xact_user_tables where schemaname = 'rouse'`,
    rowMode: 'array',
  })
  const functions = await client.query<[string, number]>({
    text: `select funcname, sum(calls)::float8 from pg_stat_xact_user_functions where schemaname = 'rouse' group by 1`,
    rowMode: 'array',
  })
  return { scanned: new Map(tables.rows), calls: new Map(functions.rows) }
}

function grown(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Map<string, number> {
  const by = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
  return new Map(by.filter(([, count]) => count > 0))
}

interface Explained {
  readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
}

class PlanInPlaceOfRows extends Error {}

async function explained(
  client: pg.ClientBase,
  call: (probe: Probe) => Promise<unknown>,
): Promise<{ readonly pages: number; readonly text: string }> {
  const found = { pages: Number.NaN, text: '' }
  const probe = {
    async query({ text, values }: Statement): Promise<never> {
      const { rows } = await client.query<{ 'QUERY PLAN': [Explained] }>(
        `explain (analyze, buffers, format json) ${text}`,
        [...values],
      )
      const plan = (rows[0] as { 'QUERY PLAN': [Explained] })['QUERY PLAN'][0].Plan
      found.pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
      found.text = text
      // EXPLAIN returns the plan instead of rows, so the caller cannot read the result.
      throw new PlanInPlaceOfRows()
    },
  }
  await call(probe as unknown as Probe).catch((error: unknown) => {
    if (!(error instanceof PlanInPlaceOfRows)) throw error
  })
  return found
}

function namedIn(text: string): string[] {
  return [...text.matchAll(/rouse\.(\w+)\(/g)].map(([, name = '']) => name)
}
