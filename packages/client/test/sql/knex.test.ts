import knex from 'knex'
import { fromKnex } from '../../src/sql/index.ts'
import { runExecutorSuite } from './executor-suite.ts'

runExecutorSuite('Knex', (url) => {
  const db = knex({ client: 'pg', connection: url })
  return {
    transaction: (work) =>
      db.transaction((trx) => work(fromKnex(trx), async (text) => await trx.raw(text))),
    close: () => db.destroy(),
  }
})
