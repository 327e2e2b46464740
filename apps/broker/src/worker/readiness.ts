import { RouseError } from '@rouse/protocol'
import { type Readiness, readReadiness } from '@rouse/storage'
import type pg from 'pg'

/** Several load balancers may poll often. Results are reused for this time. */
const freshMs = 500
const answerMsMax = 2_000

/** Checks that the database is writable and has our schema. */
export function createReadiness(options: {
  readonly pool: pg.Pool
  readonly nowMs: () => number
}): {
  check(draining: boolean): Promise<void>
} {
  const { pool, nowMs } = options
  let askedAtMs = Number.NEGATIVE_INFINITY
  let answer: Promise<RouseError | undefined> = Promise.resolve(undefined)
  let asking: Promise<Readiness> | undefined

  /** One query at a time, with a timeout, so that an unresponsive server cannot occupy every connection. */
  function ask(): Promise<Readiness> {
    asking ??= readReadiness(pool, answerMsMax).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    async check(draining) {
      if (draining) throw new RouseError('draining')
      if (nowMs() - askedAtMs >= freshMs) {
        askedAtMs = nowMs()
        answer = inTime(ask())
      }
      const fault = await answer
      if (fault !== undefined) throw fault
    },
  }
}

async function inTime(asked: Promise<Readiness>): Promise<RouseError | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the database did not answer in time')), answerMsMax)
  })
  try {
    const { writable, schemaVersion } = await Promise.race([asked, late])
    if (!writable) return new RouseError('database_unavailable', 'the database is read-only')
    if (schemaVersion > 0) return undefined
    return new RouseError('database_unavailable', 'the database schema is missing or out of date')
  } catch (error) {
    return new RouseError('database_unavailable', undefined, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
