import type pg from 'pg'
import type { Size, SkewedDatabase } from './skewed-database.ts'
import type { Probe } from './touched.ts'

/** One call. It runs on the small and on the large database, and finds the same in both. */
export interface Measure {
  readonly name: string
  readonly call: (probe: Probe, database: SkewedDatabase) => Promise<unknown>
  /** Runs before the call, in its transaction. */
  readonly prepare?: (client: pg.ClientBase, database: SkewedDatabase) => Promise<unknown>
  /** Set if the cost of the call may grow with the database: the reason, and the maximum number of pages. */
  readonly grows?: { readonly why: string; readonly pagesMax: (size: Size) => number }
}

/** Runs a plain statement. */
export function sql(text: string, values: readonly unknown[] = []) {
  return (probe: Probe): Promise<unknown> => probe.query({ text, values, rowMode: 'array' })
}

export function prepared(...statements: readonly string[]) {
  return async (client: pg.ClientBase): Promise<void> => {
    for (const statement of statements) await client.query(statement)
  }
}
