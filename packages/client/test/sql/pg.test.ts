import pg from 'pg'
import { fromPg } from '../../src/sql/index.ts'
import { runExecutorSuite } from './executor-suite.ts'

runExecutorSuite('pg', (url) => {
  const pool = new pg.Pool({ connectionString: url })
  return {
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await work(fromPg(client), (text) => client.query(text))
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    close: () => pool.end(),
  }
})
