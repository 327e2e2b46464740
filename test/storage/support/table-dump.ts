import type pg from 'pg'

/**
 * Returns every row of every table of schema rouse, sorted so that the place of a row on disk does not
 * matter.
 */
export async function dumpTables(pool: pg.Pool): Promise<Record<string, string[]>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'rouse' order by 1`,
  )
  const parts = tables.map(({ name }) => {
    return `select '${name}' as name, to_jsonb(x)::text as row from rouse.${name} x`
  })
  const { rows } = await pool.query<{ name: string; row: string }>(
    `${parts.join(' union all ')} order by 1, 2`,
  )
  const dump: Record<string, string[]> = {}
  for (const { name, row } of rows) (dump[name] ??= []).push(row)
  return dump
}
