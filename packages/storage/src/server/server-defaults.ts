// The row of rouse.server_defaults, which nodes write when they start.
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

/**
 * Sets whether commits of SQL producers send a NOTIFY. The NOTIFY is disabled if the nodes do not listen,
 * because each NOTIFY has a cost.
 */
export async function writeNotifySetting(pool: pg.Pool, notify: boolean): Promise<void> {
  await callStatement(
    pool,
    'update rouse.server_defaults set notify = $1 where notify is distinct from $1',
    [notify],
  )
}
