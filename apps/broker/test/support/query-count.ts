import { type TestDatabase, testDatabase } from '@rouse/testkit'
import type { Test } from 'tap'

/**
 * A database that counts its pops with a sequence, at a barrier that every pop passes, whatever it finds. The
 * statistics of PostgreSQL would come up to ten seconds late for an idle session.
 */
export async function countingDatabase(t: Test): Promise<TestDatabase> {
  const database = await testDatabase(t)
  await database.pool.query(`
    create sequence rouse_test.pops;
    create or replace function rouse_test.barrier(name text) returns void language plpgsql as $$
    begin
      if name = 'pop-begun' then
        perform nextval('rouse_test.pops');
      end if;
    end $$;
  `)
  return database
}

/** The number of pops so far. */
export async function popsOf(database: TestDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ pops: string }>(
    'select case when is_called then last_value else 0 end as pops from rouse_test.pops',
  )
  return Number(rows[0]?.pops)
}
