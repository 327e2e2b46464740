import { type WakeHint, withoutPlace } from '@rouse/protocol'
import { type DueSchedule, dueSchedules, fireSchedule, type SealedFiring } from '@rouse/storage'
import type pg from 'pg'
import { type PayloadCipher, schedulePlace } from '../encryption/payload-cipher.ts'
import type { Logger } from '../log.ts'
import { type DueTicks, dueTicks } from './cron-ticks.ts'
import type { Job } from './service.ts'

const schedulesMax = 100
/** A run ends after this number of queues has failed. Each failure may have taken a quarter of a second. */
const failedMax = 20

export interface CronOptions {
  readonly pool: pg.Pool
  readonly log: Logger
  readonly cipher: PayloadCipher
  readonly newMessageId: () => string
  readonly onWoken: (woken: readonly WakeHint[]) => void
  /** Called with the next tick of a schedule, by the database's clock. */
  readonly onNext: (atMs: number) => void
}

/** Fires the schedules that are due. Every node tries; the lock on a schedule's row lets one succeed. */
export function createCron(options: CronOptions): Job {
  const { pool, log, cipher, newMessageId, onWoken, onNext } = options

  /** Returns true if a schedule has more ticks to fire at once. */
  async function fire(schedule: DueSchedule): Promise<boolean> {
    const due = dueTicks(schedule, schedule.now)
    try {
      return await fireTicks(schedule, due)
    } catch (error) {
      const [first, second] = due.fire
      if (first === undefined || second === undefined) throw error
      // A queue without room for all ticks may have room for one tick.
      return await fireTicks(schedule, { fire: [first], next: second })
    }
  }

  async function fireTicks(
    schedule: DueSchedule,
    { fire: ticks, next }: DueTicks,
  ): Promise<boolean> {
    const isSealed = schedule.toSeal !== null
    const messageIds = ticks.map(() => {
      const id = newMessageId()
      return isSealed ? withoutPlace(id) : id
    })
    const woken = await fireSchedule(pool, {
      id: schedule.id,
      seen: schedule.nextAt,
      messageIds,
      ticks,
      nextAt: next ?? null,
      sealed: sealFiring(cipher, schedule, messageIds),
    })
    onWoken(woken)
    if (next !== undefined) onNext(next.getTime())
    return next !== undefined && next <= schedule.now
  }

  return {
    async run() {
      // A queue that is full or locked is tried once per run. Its other schedules would fail after the same
      // wait and delay the schedules of other queues.
      const failed = new Set<string>()
      let isMore = false
      let due: DueSchedule[]
      let fired: number
      do {
        due = await dueSchedules(pool, schedulesMax, [...failed])
        fired = 0
        for (const schedule of due) {
          if (failed.has(schedule.queue)) continue
          try {
            if (await fire(schedule)) isMore = true
            fired += 1
          } catch (error) {
            // The schedule stays due and is tried again.
            failed.add(schedule.queue)
            const reason = (error as Error).message
            log.warn(
              { schedule: schedule.name, queue: schedule.queue, reason },
              'schedule could not fire',
            )
          }
        }
      } while (due.length >= schedulesMax && fired < due.length && failed.size < failedMax)
      return isMore || (fired > 0 && due.length >= schedulesMax)
    },
  }
}

/**
 * A sealed payload is bound to its message, so the payload is sealed again for each tick. The schedule's own
 * payload is sealed again, too, with the newest key.
 */
function sealFiring(
  cipher: PayloadCipher,
  schedule: DueSchedule,
  messageIds: readonly string[],
): SealedFiring | undefined {
  const { queue, toSeal } = schedule
  if (toSeal === null) return undefined
  const payload = cipher.open(schedulePlace(schedule), toSeal)
  return {
    seen: toSeal,
    stored: cipher.seal(schedulePlace(schedule), payload),
    payloads: messageIds.map((id) => cipher.seal({ queue, id }, payload)),
  }
}
