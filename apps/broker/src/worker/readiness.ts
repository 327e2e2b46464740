import { RouseError } from '@rouse/protocol'
import { type Readiness, readReadiness } from '@rouse/storage'
import type pg from 'pg'

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
  let asking: Promise<Readiness> | undefined

  /** One at a time, and given up by itself: a silent server must not take up all connections. */
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
    timer = setTimeout(() => reject(new Error('no answer in time')), answerMsMax)
  })
  try {
    const { writable, schemaVersion } = await Promise.race([asked, late])
    if (!writable) return new RouseError('database_unavailable', 'the database is read-only')
    if (schemaVersion > 0) return undefined
    return new RouseError('database_unavailable', 'the database has no schema of ours')
  } catch (error) {
    return new RouseError('database_unavailable', undefined, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
