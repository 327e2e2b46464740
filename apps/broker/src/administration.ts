import { classifyPostgresError } from '@rouse/database'
import { RouseError } from '@rouse/protocol'
import { type Executor, withoutPreparing } from '@rouse/sidecar'
import type pg from 'pg'
import { toRouseError } from './problems.ts'

const attemptsMax = 3

/** One call of an administrative function, past the sidecar. What lost a race in the database is tried again. */
export async function administer<Result>(
  pool: pg.Pool,
  call: (executor: Executor) => Promise<Result>,
): Promise<Result> {
  // Rare and many kinds of them: prepared, they would only fill the memory of every connection.
  const executor = withoutPreparing(pool as unknown as Executor)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call(executor)
    } catch (error) {
      if (attempt < attemptsMax && classifyPostgresError(error) === 'retryable') continue
      throw toRouseError(error)
    }
  }
}

export function noSuchQueue(queue: string): RouseError {
  return new RouseError('not_found', `there is no queue "${queue}"`)
}

export function noSuchGroup(group: string): RouseError {
  return new RouseError('not_found', `there is no consumer group "${group}"`)
}
