import type pg from 'pg'

/** For poolers and servers before 14, which do not report it by themselves. */
export async function isReadOnlySession(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>(
    'show transaction_read_only',
  )
  return rows[0]?.transaction_read_only === 'on'
}

export interface BackendLook {
  /** The process that serves this very client. */
  readonly own: number
  /** Those of the processes asked about that are there and do not wait for their client to say something. */
  readonly atWork: readonly number[]
}

export async function lookAtBackends(
  client: pg.Client,
  pids: readonly number[],
): Promise<BackendLook> {
  const { rows } = await client.query<{ own: number; at_work: number[] }>({
    text: `select pg_backend_pid() as own, array(
        select pid from pg_stat_activity
        where pid = any ($1) and wait_event_type is distinct from 'Client'
      ) as at_work`,
    values: [pids],
  })
  return { own: rows[0]?.own ?? 0, atWork: rows[0]?.at_work ?? [] }
}
