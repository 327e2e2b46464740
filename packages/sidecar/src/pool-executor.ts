// Runs each statement on a connection of its own from the pool.
//
// Statements are prepared by name, once per connection. A pooler in transaction mode (pgbouncer before 1.21) gives every
// transaction another server connection: there a name is missing or already taken, and the statement fails before it
// began. So a connection through a pooler gets none, and one that fails like that gets none from then on.
import { isPooled, OutcomeUnknownError } from '@rouse/database'
import { type Connections, type Executor, type Statement, unnamed } from '@rouse/storage'
import type pg from 'pg'

/** `auto`: by name where no pooler is in between. */
export type Preparing = 'auto' | 'on' | 'off'

export function poolExecutor(pool: pg.Pool, preparing: Preparing = 'auto'): Connections {
  const prepares = new WeakMap<pg.PoolClient, boolean>()

  async function mayPrepare(client: pg.PoolClient): Promise<boolean> {
    const known = prepares.get(client)
    if (known !== undefined) return known
    const answer = preparing === 'auto' ? !(await isPooled(client)) : preparing === 'on'
    prepares.set(client, answer)
    return answer
  }

  async function run(client: pg.PoolClient, statement: Statement): Promise<unknown[][]> {
    const named = statement.name !== undefined && (await mayPrepare(client))
    try {
      return await ask(client, named ? statement : unnamed(statement))
    } catch (error) {
      if (!named || !isPreparedElsewhere(error)) throw error
      prepares.set(client, false)
      return ask(client, unnamed(statement))
    }
  }

  async function use<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    let isLost = false
    try {
      return await work({
        async query(statement) {
          try {
            return { rows: await run(client, statement) }
          } catch (error) {
            isLost ||= isConnectionLost(error)
            throw error
          }
        },
      })
    } finally {
      client.release(isLost)
    }
  }

  return { use, query: (statement) => use((executor) => executor.query(statement)) }
}

async function ask(client: pg.PoolClient, statement: Statement): Promise<unknown[][]> {
  const { rows } = await client.query({ ...statement, values: [...statement.values] })
  return rows as unknown[][]
}

const preparedElsewhere = new Set([
  '26000', // invalid_sql_statement_name: prepared on another server connection
  '42P05', // duplicate_prepared_statement: another client prepared it on this one
])

/** Both say that the statement did not begin. */
function isPreparedElsewhere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && preparedElsewhere.has(String(error.code))
}

/** A client that lost its connection must not go back to the pool; one whose statement failed may. */
function isConnectionLost(error: unknown): boolean {
  if (error instanceof OutcomeUnknownError) return false
  if (!(error instanceof Error && 'severity' in error)) return true
  return error.severity === 'FATAL' || error.severity === 'PANIC'
}
