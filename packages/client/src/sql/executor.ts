/**
 * Runs SQL in your own transaction: a client of `pg`, any object with the same `query`, or the result of a
 * function such as `fromKysely`.
 */
export interface SqlExecutor {
  query(text: string, values: string[]): PromiseLike<unknown>
}

/** Libraries return the rows themselves, or an object with the rows. */
export function rowsOf(result: unknown): readonly Record<string, unknown>[] {
  const { rows = result } = (result ?? {}) as { rows?: unknown }
  return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : []
}
