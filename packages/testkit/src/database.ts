import { randomBytes } from 'node:crypto'
import { createPool } from '@rouse/database'
import pg from 'pg'
import type { Test } from 'tap'
import { armBarrier, type Barrier } from './barrier.ts'
import { sharedPostgresUrl } from './postgres-source.ts'
import { databaseUrl, ensureTemplate, type TemplateContent } from './template-database.ts'

export interface TestDatabase {
  readonly url: string
  readonly pool: pg.Pool
  /** Freezes `rouse.now()` at this time: an ISO date or milliseconds since 1970. */
  readonly freezeClock: (at: string | number) => Promise<void>
  /** Advances `rouse.now()`, whether frozen or running. */
  readonly advanceClock: (ms: number) => Promise<void>
  /** Returns to real time. */
  readonly thawClock: () => Promise<void>
  /** The barrier is released at the end of the test at the latest. */
  readonly armBarrier: (name: string) => Promise<Barrier>
}

export interface TestDatabaseOptions {
  /** By default the functions have barriers and a settable clock. False: the functions of production. */
  readonly instrumented?: boolean
  readonly directory?: string
  readonly poolMax?: number
  /** By default the database is empty. */
  readonly content?: TemplateContent
}

const poolMaxDefault = 10

/** A migrated database for this test, dropped at its end. */
export async function testDatabase(
  t: Test,
  options: TestDatabaseOptions = {},
): Promise<TestDatabase> {
  const instrumented = options.instrumented ?? true
  const serverUrl = await sharedPostgresUrl()
  const { directory, content } = options
  const template = await ensureTemplate(serverUrl, { directory, instrumented, content })
  const name = `rouse_test_${randomBytes(8).toString('hex')}`
  // Copying the files takes half of the CPU of the default, which also writes 12 MB of log.
  await onServer(serverUrl, `create database ${name} template ${template} strategy file_copy`)
  const url = databaseUrl(serverUrl, name)
  const max = options.poolMax ?? poolMaxDefault
  const pool = createPool({ url, max, applicationName: 'rouse test', keepSettings: true })
  const barriers: Barrier[] = []
  t.teardown(async () => {
    await Promise.all(barriers.map((barrier) => barrier.release()))
    await onServer(serverUrl, `drop database ${name} with (force)`)
    // Not awaited: if the test never released a client, the pool would never end.
    void pool.end()
  })

  async function setClock(frozenAt: Date | null): Promise<void> {
    await pool.query('update rouse_test.clock set frozen_at = $1, offset_ms = 0', [frozenAt])
  }
  return {
    url,
    pool,
    freezeClock: (at) => setClock(new Date(at)),
    thawClock: () => setClock(null),
    async advanceClock(ms) {
      await pool.query(
        `update rouse_test.clock set
           frozen_at = frozen_at + $1 * interval '1 millisecond',
           offset_ms = case when frozen_at is null then offset_ms + $1 else 0 end`,
        [ms],
      )
    },
    async armBarrier(name) {
      const barrier = await armBarrier(url, name)
      barriers.push(barrier)
      return barrier
    },
  }
}

async function onServer(serverUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl, application_name: 'rouse test' })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
