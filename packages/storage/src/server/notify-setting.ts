import type pg from 'pg'
import { callStatement } from '../call.ts'

/** Whether commits of SQL producers notify: it costs them, so a server whose nodes do not listen should not. */
export async function writeNotifySetting(pool: pg.Pool, notify: boolean): Promise<void> {
  await callStatement(
    pool,
    'update rouse.server_defaults set notify = $1 where notify is distinct from $1',
    [notify],
  )
}
