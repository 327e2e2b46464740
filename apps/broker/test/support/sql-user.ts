import pg from 'pg'
import type { Test } from 'tap'

/** A user's own connection to the database of a node. */
export async function sqlUser(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}
