import type pg from 'pg'
import { HostClient } from './host-client.ts'

/** Whether a pooler (pgbouncer, RDS Proxy, …) is between this client and PostgreSQL. A pooler invents a
 * process id for each client, because the backend behind the client changes. Without a pooler, the id from
 * the session start is that of the backend. */
export async function isPooled(client: pg.ClientBase): Promise<boolean> {
  if (client instanceof HostClient && client.isPooled !== undefined) return client.isPooled
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  // Set when the connection starts, and missing from the types of pg.
  const { processID } = client as pg.ClientBase & { readonly processID: number | null }
  return rows[0]?.pid !== processID
}
