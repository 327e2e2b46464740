import { OutcomeUnknownError } from '@rouse/database'
import type pg from 'pg'
import type { Executor, Statement } from './statements/executor.ts'

interface Notice {
  /** The C function that raised it: the same in every language the server may speak. */
  readonly routine?: string | undefined
}

/**
 * Runs each statement on a connection of its own from the pool. A server that gives up waiting for its synchronous
 * standby says so only in a warning and reports success: here that is an unknown outcome.
 */
export function poolExecutor(pool: pg.Pool): Executor {
  return {
    async query(statement: Statement) {
      const client = await pool.connect()
      let unconfirmed = false
      const onNotice = (notice: Notice): void => {
        if (notice.routine === 'SyncRepWaitForLSN') unconfirmed = true
      }
      client.on('notice', onNotice)
      try {
        const { rows } = await client.query({ ...statement, values: [...statement.values] })
        client.off('notice', onNotice)
        client.release()
        if (unconfirmed) {
          throw new OutcomeUnknownError(
            new Error('the wait for the synchronous standby was cancelled'),
          )
        }
        return { rows: rows as unknown[][] }
      } catch (error) {
        client.off('notice', onNotice)
        if (!(error instanceof OutcomeUnknownError)) client.release(isConnectionLost(error))
        throw error
      }
    },
  }
}

/** A client that lost its connection must not go back to the pool; one whose statement failed may. */
function isConnectionLost(error: unknown): boolean {
  return !(error instanceof Error && 'severity' in error) || error.severity === 'FATAL'
}
