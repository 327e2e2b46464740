import type pg from 'pg'
import { callStatement } from '../call.ts'

/** The server's max_connections. */
export async function serverConnectionsMax(pool: pg.Pool): Promise<number> {
  const [row] = await callStatement(pool, `select current_setting('max_connections')::int`)
  return row?.[0] as number
}
