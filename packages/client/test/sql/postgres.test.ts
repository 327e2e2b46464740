import postgres from 'postgres'
import { fromPostgres } from '../../src/sql/index.ts'
import { runExecutorSuite } from './executor-suite.ts'

runExecutorSuite('postgres', (url) => {
  const client = postgres(url, { onnotice: () => {} })
  return {
    transaction: async (work) =>
      (await client.begin((sql) =>
        work(fromPostgres(sql), async (text) => await sql.unsafe(text)),
      )) as never,
    close: () => client.end(),
  }
})
