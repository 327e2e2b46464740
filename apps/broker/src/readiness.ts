import { RouseError } from '@rouse/protocol'
import type pg from 'pg'
import { readReadiness } from './statements/readiness.ts'

/** Load balancers ask often, and many of them: the database is asked at most so often. */
const freshMs = 500
const answerMsMax = 2_000

/** Whether the database can be written and has our schema. */
export function createReadiness(options: {
  readonly pool: pg.Pool
  readonly nowMs: () => number
}): {
  check(draining: boolean): Promise<void>
} {
  const { pool, nowMs } = options
  let askedAtMs = Number.NEGATIVE_INFINITY
  let answer: Promise<RouseError | undefined> = Promise.resolve(undefined)

  return {
    async check(draining) {
      if (draining) throw new RouseError('draining')
      if (nowMs() - askedAtMs >= freshMs) {
        askedAtMs = nowMs()
        answer = ask(pool)
      }
      const fault = await answer
      if (fault !== undefined) throw fault
    },
  }
}

async function ask(pool: pg.Pool): Promise<RouseError | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), answerMsMax)
  })
  try {
    const { writable, schemaVersion } = await Promise.race([readReadiness(pool), late])
    if (!writable) return new RouseError('database_unavailable', 'the database is read-only')
    if (schemaVersion > 0) return undefined
    return new RouseError('database_unavailable', 'the database has no schema of ours')
  } catch (error) {
    return new RouseError('database_unavailable', undefined, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
