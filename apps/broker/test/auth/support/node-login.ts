import { randomBytes } from 'node:crypto'
import type { TestDatabase } from '@rouse/testkit'
import type { Test } from 'tap'

/** The settings of a node whose login only has the privileges of `rouse_node`. */
export async function nodeLogin(
  t: Test,
  { pool, url }: Pick<TestDatabase, 'pool' | 'url'>,
): Promise<{ readonly ROUSE_DATABASE_URL: string; readonly ROUSE_MIGRATE_URL: string }> {
  const name = `rouse_test_${randomBytes(6).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  await pool.query(`create role ${name} login password '${password}' in role rouse_node`)
  t.teardown(() => pool.query(`drop role ${name}`))
  const own = new URL(url)
  own.username = name
  own.password = password
  return { ROUSE_DATABASE_URL: own.href, ROUSE_MIGRATE_URL: url }
}
