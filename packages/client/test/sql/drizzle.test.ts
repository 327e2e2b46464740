import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOfPostgres } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { fromDrizzle } from '../../src/sql/index.ts'
import { runExecutorSuite } from './executor-suite.ts'

runExecutorSuite('Drizzle on pg', (url) => {
  const pool = new pg.Pool({ connectionString: url })
  const db = drizzle({ client: pool })
  return {
    transaction: (work) =>
      db.transaction((tx) =>
        work(fromDrizzle(tx), async (text) => await tx.execute(sql.raw(text))),
      ),
    close: () => pool.end(),
  }
})

runExecutorSuite('Drizzle on postgres', (url) => {
  const client = postgres(url, { onnotice: () => {} })
  const db = drizzleOfPostgres({ client })
  return {
    transaction: (work) =>
      db.transaction((tx) =>
        work(fromDrizzle(tx), async (text) => await tx.execute(sql.raw(text))),
      ),
    close: () => client.end(),
  }
})
