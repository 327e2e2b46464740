import type pg from 'pg'
import { OutcomeUnknownError } from './outcome-unknown-error.ts'
import { provesNotCommitted } from './postgres-errors.ts'

/**
 * Runs `work` in one transaction on one connection and commits it.
 *
 * Three endings: it committed and the result is returned; it did not, and the failure is thrown;
 * or the connection died under COMMIT, or the standby did not confirm it, and nobody can say, which
 * is an OutcomeUnknownError.
 */
export async function withTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let result: Result
  try {
    await client.query('begin isolation level read committed')
    result = await work(client)
  } catch (error) {
    await rollBackAndRelease(client)
    throw error
  }
  await commitAndRelease(client)
  return result
}

async function rollBackAndRelease(client: pg.PoolClient): Promise<void> {
  try {
    await client.query('rollback')
    client.release()
  } catch {
    // The failure of the work is the one to report; a client that cannot roll back is unusable.
    client.release(true)
  }
}

async function commitAndRelease(client: pg.PoolClient): Promise<void> {
  let command: string
  try {
    command = (await client.query('commit')).command
  } catch (error) {
    client.release(true)
    if (error instanceof OutcomeUnknownError || provesNotCommitted(error)) throw error
    throw new OutcomeUnknownError(error)
  }
  client.release()
  // PostgreSQL answers COMMIT with ROLLBACK when a swallowed error had already failed the
  // transaction. Reporting that as success would lose the caller's writes silently.
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back at commit')
}
