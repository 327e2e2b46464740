import type pg from 'pg'
import { HostClient } from './host-client.ts'

/**
 * Whether a pooler (pgbouncer, RDS Proxy, …) stands between this client and PostgreSQL. A pooler hands out process ids of
 * its own, because the server process behind a client changes; without one both sides name the same process.
 */
export async function isPooled(client: pg.ClientBase): Promise<boolean> {
  if (client instanceof HostClient && client.isPooled !== undefined) return client.isPooled
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  // Told when the connection begins, and missing from the types of pg.
  const { processID } = client as pg.ClientBase & { readonly processID: number | null }
  return rows[0]?.pid !== processID
}
