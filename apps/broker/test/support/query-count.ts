import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import type { Test } from 'tap'

/** A database in which PostgreSQL itself counts the calls of functions. */
export async function countingDatabase(t: Test): Promise<TestDatabase> {
  const database = await testDatabase(t, { instrumented: false })
  const name = new URL(database.url).pathname.slice(1)
  await database.pool.query(`alter database ${name} set track_functions = 'all'`)
  return database
}

/**
 * How often nodes called a function. A session tells its counts at most once a second, so the figure is taken when
 * two looks more than that apart agree.
 */
export async function callsOf(database: TestDatabase, name: string): Promise<number> {
  let last = -1
  return await eventually(
    async () => {
      const { rows } = await database.pool.query<{ calls: string }>(
        `select coalesce(sum(calls), 0) as calls from pg_stat_user_functions
         where schemaname = 'rouse' and funcname = $1`,
        [name],
      )
      const calls = Number(rows[0]?.calls)
      const settled = calls === last
      last = calls
      return settled ? { calls } : undefined
    },
    { timeoutMs: 20_000, intervalMs: 1_200 },
  ).then(({ calls }) => calls)
}
