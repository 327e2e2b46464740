import type pg from 'pg'
import type { ServerVersion } from './server-version.ts'

export async function readServerVersion(client: pg.ClientBase | pg.Pool): Promise<ServerVersion> {
  const { rows } = await client.query<ServerVersion>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as name`,
  )
  const [version] = rows
  if (version === undefined) throw new Error('PostgreSQL did not report its version')
  return version
}
