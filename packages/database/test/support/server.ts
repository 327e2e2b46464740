import pg from 'pg'
import type { Test } from 'tap'
import { createPool, startEmbeddedPostgres } from '../../src/index.ts'

// The testkit depends on this package, so this package cannot use it.

let shared: Promise<string> | undefined

function serverUrl(): Promise<string> {
  shared ??= process.env.ROUSE_TEST_DATABASE_URL
    ? Promise.resolve(process.env.ROUSE_TEST_DATABASE_URL)
    : startEmbeddedPostgres().then((server) => {
        server.unref()
        return server.url
      })
  return shared
}

let databasesMade = 0

/** Creates an empty database with a pool, and drops it at the end of the test. */
export async function emptyDatabase(t: Test): Promise<{ url: string; pool: pg.Pool }> {
  const admin = new pg.Client({ connectionString: await serverUrl() })
  await admin.connect()
  databasesMade += 1
  const name = `rouse_database_${process.pid}_${databasesMade}`
  await admin.query(`create database ${name}`)
  const url = new URL(await serverUrl())
  url.pathname = name
  const pool = createPool({
    url: url.href,
    max: 10,
    applicationName: 'rouse database test',
    keepSettings: true,
  })
  t.teardown(async () => {
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
    void pool.end()
  })
  return { url: url.href, pool }
}
