// The suites that depend on the PostgreSQL version, and a run of suites on one version.
import { readdirSync } from 'node:fs'
import { join, sep } from 'node:path'
import { root } from '../run.mjs'
import { runTap } from './run-tap.mjs'

/** The suites of the SQL functions. */
export function storageSuites() {
  return readdirSync(join(root, 'test', 'storage'), { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/storage/${name.replaceAll(sep, '/')}`)
    .toSorted()
}

/** The suites that `npm test` runs on the oldest version, in about a minute: those that its planner,
 * functions and locks may affect. `npm run test:versions` runs everything. */
export function oldestSuites() {
  const names = [
    'ack/leases',
    'explain/delivery',
    'explain/lists',
    'pop/delivery',
    'pop/pop-bytes',
    'push/dedup',
    'push/enqueue',
    'push/push',
    'queues/groups',
    'schema/collation',
    'schema/schema',
    'time/budgets',
    'time/promote',
    'time/retention',
    'unique/unique',
  ]
  return names.map((name) => `test/storage/${name}.test.ts`)
}

/** The suites of the SQL functions, and all others that run SQL of their own. */
export function versionSuites() {
  const broker = [
    'routes/configure',
    'routes/dead-letters',
    'scheduler/listen',
    'scheduler/listen-examples',
    'routes/messages',
    'routes/queue-options',
    'routes/schedules',
    'routes/traces',
    'routes/why',
  ]
  return [
    ...storageSuites(),
    'test/growth/calls.test.ts',
    'apps/cli/test/doctor.test.ts',
    ...broker.map((name) => `apps/broker/test/${name}.test.ts`),
    'packages/database/test/migrations/migrate.test.ts',
    'packages/testkit/test/database.test.ts',
    'packages/testkit/test/postgres-pair.test.ts',
    'packages/testkit/test/postgres-source.test.ts',
  ]
}

/**
 * Runs the files on one server of that major version. They share it, because starting a server takes longer
 * than most suites. Prints a line and returns undefined if this platform has no such server.
 */
export async function runOnPostgres(major, files) {
  const { postgresMissing, startDiscardedPostgres } = await import(
    '../../packages/testkit/dist/index.js'
  )
  const missing = postgresMissing(major)
  if (missing) {
    console.log(`skipped: ${missing}`)
    return undefined
  }
  const postgres = await startDiscardedPostgres(major)
  try {
    return await runTap(files, {
      ROUSE_TEST_DATABASE_URL: postgres.url,
      ROUSE_TEST_POSTGRES_MAJOR: String(major),
    })
  } finally {
    await postgres.stop()
  }
}
