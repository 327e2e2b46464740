import type pg from 'pg'

/** Needed for poolers and for servers before 14: they do not report at session start whether the session is
 * read-only. */
export async function isReadOnlySession(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>(
    'show transaction_read_only',
  )
  return rows[0]?.transaction_read_only === 'on'
}

export interface BackendStates {
  /** The backend of this client. */
  readonly own: number
  /** The given backends that still exist and are not waiting for their client. */
  readonly atWork: readonly number[]
}

export async function readBackendStates(
  client: pg.Client,
  pids: readonly number[],
): Promise<BackendStates> {
  const { rows } = await client.query<{ own: number; at_work: number[] }>({
    text: `select pg_backend_pid() as own, array(
        select pid from pg_stat_activity
        where pid = any ($1) and wait_event_type is distinct from 'Client'
      ) as at_work`,
    values: [pids],
  })
  return { own: rows[0]?.own ?? 0, atWork: rows[0]?.at_work ?? [] }
}
