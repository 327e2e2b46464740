import type pg from 'pg'
import { callStatement } from '../call.ts'

/** Sets the server-wide defaults of queue options; rejects the values that `configure` rejects. */
export async function writeServerDefaults(
  pool: pg.Pool,
  options: Readonly<Record<string, unknown>>,
): Promise<void> {
  const text = JSON.stringify(options)
  await callStatement(pool, 'select rouse.check_options($1::jsonb)', [text])
  await callStatement(
    pool,
    'update rouse.server_defaults set options = $1::jsonb where options is distinct from $1::jsonb',
    [text],
  )
}
