import type pg from 'pg'

/** Every row of every table of schema rouse, in an order that does not depend on where it lies. */
export async function dumpTables(pool: pg.Pool): Promise<Record<string, string[]>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'rouse' order by 1`,
  )
  const dump: Record<string, string[]> = {}
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(
      `select to_jsonb(x)::text as row from rouse.${name} x order by 1`,
    )
    dump[name] = rows.map(({ row }) => row)
  }
  return dump
}
