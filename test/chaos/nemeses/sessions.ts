// Sessions of the harness itself and of the nodes.
import pg from 'pg'
import type { ChaosPostgres } from '../cluster/chaos-postgres.ts'
import { within } from '../cluster/deadline.ts'

const sessionMsMax = 10_000

export const isOfNodes = `backend_type = 'client backend'
  and application_name not in ('chaos', 'rouse pair')`

/** Ends the sessions of the nodes in any state; the nodes must reconnect. */
export async function endSessionsOfNodes(postgres: ChaosPostgres): Promise<void> {
  await postgres.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${isOfNodes}`)
}

/** Resolves with undefined if the server accepts no more sessions. */
export async function openSession(connectionString: string): Promise<pg.Client | undefined> {
  const session = new pg.Client({
    connectionString,
    application_name: 'chaos',
    connectionTimeoutMillis: sessionMsMax,
    query_timeout: sessionMsMax,
  })
  session.on('error', () => {})
  try {
    await session.connect()
    return session
  } catch {
    await within(sessionMsMax, 'closing a session', session.end()).catch(() => {})
    return undefined
  }
}

export async function endAll(sessions: readonly pg.Client[]): Promise<void> {
  const ends = sessions.map((session) => session.end())
  await within(sessionMsMax, 'closing the sessions', Promise.all(ends)).catch(() => {})
}
