import { CamelCasePlugin, Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { fromKysely } from '../../src/sql/index.ts'
import { runExecutorSuite } from './executor-suite.ts'

for (const plugins of [[], [new CamelCasePlugin()]]) {
  runExecutorSuite(plugins.length === 0 ? 'Kysely' : 'Kysely with a plugin', (url) => {
    const pool = new pg.Pool({ connectionString: url })
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }), plugins })
    return {
      transaction: (work) =>
        db
          .transaction()
          .execute((trx) => work(fromKysely(trx), (text) => sql.raw(text).execute(trx))),
      close: () => db.destroy(),
    }
  })
}
