import type pg from 'pg'
import type { Size, SkewedDatabase } from './skewed-database.ts'
import type { Probe } from './touched.ts'

/** One call, on a database of either size. What it finds and does is the same in both. */
export interface Measure {
  readonly name: string
  readonly call: (probe: Probe, database: SkewedDatabase) => Promise<unknown>
  /** In the transaction of the call, before it. */
  readonly prepare?: (client: pg.ClientBase, database: SkewedDatabase) => Promise<unknown>
  /** A call that reads all rows of some kind, with the reason, and the most pages that this may be. */
  readonly grows?: { readonly why: string; readonly pagesMax: (size: Size) => number }
}

/** A statement of our own. */
export function sql(text: string, values: readonly unknown[] = []) {
  return (probe: Probe): Promise<unknown> => probe.query({ text, values, rowMode: 'array' })
}

export function prepared(...statements: readonly string[]) {
  return async (client: pg.ClientBase): Promise<void> => {
    for (const statement of statements) await client.query(statement)
  }
}
