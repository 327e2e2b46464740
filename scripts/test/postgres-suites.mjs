// The suites that depend on the PostgreSQL version, and a run of suites on one version.
import { readdirSync } from 'node:fs'
import { join, sep } from 'node:path'
import { root } from '../run.mjs'
import { cpuSecondsOf } from './cpu-time.mjs'
import { runSuites } from './run-tap.mjs'

/** The suites of the SQL functions. */
export function storageSuites() {
  return readdirSync(join(root, 'test', 'storage'), { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/storage/${name.replaceAll(sep, '/')}`)
    .toSorted()
}

/** The suites that `npm test` runs on the oldest version, too, in about a minute: those that its planner,
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
 * Runs each list of files on one server of its major version, all in one schedule. The files of a list share
 * the server, because starting one takes longer than most suites. Prints a line for a version that this
 * platform has no server of, and returns undefined if nothing could run.
 */
export async function runOnPostgres(lists) {
  const { postgresMissing, startDiscardedPostgres } = await import(
    '../../packages/testkit/dist/index.js'
  )
  const servers = []
  try {
    const suites = []
    for (const { major, files } of lists) {
      const missing = postgresMissing(major)
      if (missing) {
        console.log(`skipped: ${missing}`)
        continue
      }
      const server = await startDiscardedPostgres(major)
      servers.push({ major, server })
      const settings = {
        ROUSE_TEST_DATABASE_URL: server.url,
        ROUSE_TEST_POSTGRES_MAJOR: String(major),
      }
      suites.push({ files, settings, note: suites.length === 0 ? '' : ` on PostgreSQL ${major}` })
    }
    return suites.length === 0 ? undefined : await runSuites(suites)
  } finally {
    for (const { major, server } of servers) {
      const cpuSeconds = cpuSecondsOf(server.pid)
      if (cpuSeconds !== undefined)
        console.log(`CPU of PostgreSQL ${major}: ${cpuSeconds.toFixed(0)} s`)
    }
    await Promise.all(servers.map(({ server }) => server.stop()))
  }
}
