import type pg from 'pg'

/** One statement, its rows as arrays of columns. Not prepared: these are rare. */
export async function callStatement(
  pool: pg.Pool,
  text: string,
  values: readonly unknown[] = [],
): Promise<unknown[][]> {
  const { rows } = await pool.query<unknown[]>({ text, values: [...values], rowMode: 'array' })
  return rows
}
