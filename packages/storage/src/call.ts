import type pg from 'pg'

/** Runs one statement and returns rows as arrays of columns. Not prepared: these calls are rare. */
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
    // After this time pg drops the connection, whatever the server does.
    ...(limits.timeoutMs !== undefined && { query_timeout: limits.timeoutMs }),
  }
  const { rows } = await pool.query<unknown[]>(config)
  return rows
}
