import type pg from 'pg'
import { callStatement } from '../call.ts'

/**
 * Whether commits of SQL producers notify. Disabled on servers whose nodes do not listen, because it has a
 * cost.
 */
export async function writeNotifySetting(pool: pg.Pool, notify: boolean): Promise<void> {
  await callStatement(
    pool,
    'update rouse.server_defaults set notify = $1 where notify is distinct from $1',
    [notify],
  )
}
