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

/** Roles of SQL producers and nodes that were created after the schema, and so have no privileges yet. */
export async function rolesWithoutPrivileges(pool: Pool): Promise<string[]> {
  const rows = await callStatement(
    pool,
    `select r.rolname::text from pg_catalog.pg_roles r, pg_catalog.pg_namespace n
     where n.nspname = 'rouse' and r.rolname in ('rouse_producer', 'rouse_node')
       and not has_schema_privilege(r.oid, n.oid, 'usage') order by 1`,
  )
  return rows.map(([name]) => name as string)
}

/** Only the owner of the schema may do it. */
export async function grantRoles(pool: Pool): Promise<void> {
  await callStatement(pool, 'select rouse.grant_roles()')
}
