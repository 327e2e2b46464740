import { setTimeout as delay } from 'node:timers/promises'
import { classifyPostgresError } from '@rouse/database'
import { RouseError } from '@rouse/protocol'
import { type Executor, withoutPreparing } from '@rouse/storage'
import type pg from 'pg'
import { toRouseError } from './errors.ts'

const attemptsMax = 3
/** No attempt starts after this time. An attempt waits up to 0.7 s for a lock, so a call ends within 1 s. */
const tryAgainMsMax = 200
/** Retries for this long while a consumer's transaction is open: such a transaction usually ends soon. */
const openTransactionMsMax = 500
const openTransactionPauseMs = 25

/** Calls an administrative function without the sidecar. Retries after a deadlock or a similar conflict. */
export async function runAdminQuery<Result>(
  pool: pg.Pool,
  call: (executor: Executor) => Promise<Result>,
): Promise<Result> {
  // These calls are rare and of many kinds. Prepared statements would only use memory on every connection.
  const executor = withoutPreparing(pool as unknown as Executor)
  const begunMs = performance.now()
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call(executor)
    } catch (error) {
      const passedMs = performance.now() - begunMs
      const isLost = attempt < attemptsMax && passedMs < tryAgainMsMax
      if (isLost && classifyPostgresError(error) === 'retryable') continue
      const known = isLockTimeout(error) ? lockedError(error) : toRouseError(error)
      if (known.code !== 'consumer_transaction_open' || passedMs > openTransactionMsMax) throw known
      await delay(openTransactionPauseMs)
    }
  }
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '55P03'
}

function lockedError(cause: unknown): RouseError {
  const detail =
    'another call holds a lock that this call needs, for example to create a group in a large queue; nothing was changed: try again'
  return new RouseError('overloaded', detail, { cause })
}

export function noSuchQueue(queue: string): RouseError {
  return new RouseError('not_found', `there is no queue "${queue}"`)
}

export function noSuchGroup(group: string): RouseError {
  return new RouseError('not_found', `there is no consumer group "${group}"`)
}
