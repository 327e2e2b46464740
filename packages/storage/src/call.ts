import type pg from 'pg'

/** One statement, its rows as arrays of columns. Not prepared: these are rare. */
export async function callStatement(
  pool: pg.Pool,
  text: string,
  values: readonly unknown[] = [],
  limits: { readonly timeoutMs?: number } = {},
): Promise<unknown[][]> {
  const config = {
    text,
    values: [...values],
    rowMode: 'array' as const,
    // After this the connection is given up, whatever the server does.
    ...(limits.timeoutMs !== undefined && { query_timeout: limits.timeoutMs }),
  }
  const { rows } = await pool.query<unknown[]>(config)
  return rows
}
