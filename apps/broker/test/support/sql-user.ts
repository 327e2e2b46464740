import pg from 'pg'
import type { Test } from 'tap'

/** Opens a connection to the database of a node, as a user of SQL does. */
export async function sqlUser(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}
