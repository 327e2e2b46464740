// Makes due messages deliverable: retries, lanes that were blocked or freed by SQL, and scheduled messages.
//
// One call promotes retries and lanes, another call promotes scheduled messages, so that neither waits for
// the other. Both calls skip what is locked. PatientPromotions then promotes the scheduled messages of locked
// partitions: it waits for each lock on a separate connection. A busy partition is locked most of the time,
// so only a call that waits in the lock queue gets the lock soon.

import { provesNotCommitted } from '@rouse/database'
import { shownPartition, type WakeHint } from '@rouse/protocol'
import {
  type Executor,
  type PartitionName,
  promotePartition,
  promoteReady,
  promoteScheduled,
} from '@rouse/storage'
import type { Logger } from '../../log.ts'
import type { FiredBy, Job } from '../service.ts'

const rowsMax = 1_000
const lockMs = 200
const patientMax = 2
const waitingMax = 1_000

export interface PromoterOptions {
  readonly executor: Executor
  readonly log: Pick<Logger, 'warn'>
  readonly onWoken: (woken: readonly WakeHint[], firedBy: FiredBy) => void
  /** Scheduled messages are in their queues now. Hints count them. */
  readonly onEntered: (woken: readonly WakeHint[]) => void
  /** Called after a failed call that may still have made messages deliverable. */
  readonly onUnknown: () => void
}

export interface Promoter extends Job {
  /** Resolves when no promotion waits for a lock. No promotion starts afterwards. */
  stop(): Promise<void>
}

export function createPromoter(options: PromoterOptions): Promoter {
  const { executor, log, onWoken, onEntered } = options
  const patient = new PatientPromotions(options)
  const failing = new Map<string, string>()

  /** Logs each reason of a partition once, until a run has no failures. */
  function report(failed: readonly (PartitionName & { readonly reason: string })[]): void {
    if (failed.length === 0) return failing.clear()
    for (const { queue, partition, reason } of failed) {
      const key = keyOf({ queue, partition })
      if (failing.get(key) === reason) continue
      failing.set(key, reason)
      const shown = shownPartition(partition)
      log.warn({ queue, partition: shown, reason }, 'could not move scheduled messages to the log')
    }
  }

  return {
    async run(firedBy) {
      const [ready, scheduled] = await Promise.allSettled([
        promoteReady(executor, rowsMax),
        promoteScheduled(executor, rowsMax),
      ])
      if (ready.status === 'fulfilled') onWoken(ready.value.woken, firedBy)
      if (scheduled.status === 'fulfilled') {
        onWoken(scheduled.value.woken, firedBy)
        onEntered(scheduled.value.woken)
        report(scheduled.value.failed)
        patient.add(scheduled.value.locked)
      }
      for (const { reason } of [ready, scheduled].filter((call) => call.status === 'rejected')) {
        if (!provesNotCommitted(reason)) options.onUnknown()
      }
      if (ready.status === 'rejected') throw ready.reason as Error
      if (scheduled.status === 'rejected') throw scheduled.reason as Error
      return ready.value.isMore || scheduled.value.isMore
    },
    stop: () => patient.stop(),
  }
}

class PatientPromotions {
  readonly #options: PromoterOptions
  /** The locked partitions, in the order in which they were found. */
  readonly #waiting = new Map<string, PartitionName>()
  readonly #running = new Map<string, Promise<void>>()
  #stopped = false

  constructor(options: PromoterOptions) {
    this.#options = options
  }

  add(locked: readonly PartitionName[]): void {
    for (const name of locked) {
      const key = keyOf(name)
      if (this.#waiting.size < waitingMax && !this.#running.has(key)) this.#waiting.set(key, name)
    }
    this.#next()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#waiting.clear()
    await Promise.all(this.#running.values())
  }

  #next(): void {
    for (const [key, name] of this.#waiting) {
      if (this.#stopped || this.#running.size >= patientMax) return
      this.#waiting.delete(key)
      this.#running.set(key, this.#promote(key, name))
    }
  }

  async #promote(key: string, name: PartitionName): Promise<void> {
    const { executor, onWoken, onEntered } = this.#options
    try {
      const woken = await promotePartition(executor, name, { limit: rowsMax, lockMs })
      onWoken(woken, 'timer')
      onEntered(woken)
    } catch (error) {
      // Still locked, or the database is unavailable: a later run of the job finds the partition again.
      if (!provesNotCommitted(error)) this.#options.onUnknown()
    }
    this.#running.delete(key)
    this.#next()
  }
}

function keyOf({ queue, partition }: PartitionName): string {
  return JSON.stringify([queue, partition])
}
