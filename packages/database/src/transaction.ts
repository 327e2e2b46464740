import type pg from 'pg'
import { OutcomeUnknownError } from './outcome-unknown-error.ts'
import { provesNotCommitted } from './postgres-errors.ts'

/** Runs `work` in one transaction on one connection and commits it. Returns the result if the transaction is
 * committed, and throws the error if it is not. Throws an OutcomeUnknownError if the connection died during
 * COMMIT, or if the standby did not confirm the commit. */
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
    // The caller gets the error of `work`. A client that cannot roll back is unusable.
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
  // PostgreSQL answers COMMIT with ROLLBACK if a swallowed error has already failed the transaction.
  // Reporting success would lose the caller's writes silently.
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back at commit')
}
