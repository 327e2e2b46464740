import type { Pool } from 'pg'
import { callStatement } from '../call.ts'

/** The login of a session, and how it reaches the server. */
export interface Login {
  readonly name: string
  /** Whether it may change the schema, as its owner, a member of the owner, or a superuser. */
  readonly ownsSchema: boolean
  readonly isEncrypted: boolean
  /** Null: by a Unix socket. */
  readonly serverAddress: string | null
}

export async function readLogin(pool: Pool): Promise<Login> {
  const [row] = await callStatement(
    pool,
    `select current_user::text,
       coalesce((select pg_has_role(n.nspowner, 'usage') from pg_catalog.pg_namespace n where n.nspname = 'rouse'), false),
       coalesce((select s.ssl from pg_catalog.pg_stat_ssl s where s.pid = pg_backend_pid()), false),
       host(inet_server_addr())`,
  )
  const [name, ownsSchema, isEncrypted, serverAddress] = row as [
    string,
    boolean,
    boolean,
    string | null,
  ]
  return { name, ownsSchema, isEncrypted, serverAddress }
}
