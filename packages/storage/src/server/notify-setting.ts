import type pg from 'pg'
import { callStatement } from '../call.ts'

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
