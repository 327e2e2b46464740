// Ends the leases of popped messages that do not reach their client: the client has disconnected, a payload
// cannot be read, or the response cannot be sent.
import { setTimeout as delay } from 'node:timers/promises'
import type { Lease } from '@rouse/storage'
import type { UnreadableMessage } from '../encryption/opening.ts'
import type { BrokerContext } from '../worker/context.ts'

export interface Undelivered {
  /** Releases leases at once, without charging an attempt. */
  release(leaseIds: Iterable<string>): void
  /**
   * Releases leases without charging an attempt, but after a delay. Otherwise the next waiter would get the
   * messages at once.
   */
  giveBack(leases: readonly Lease[]): Promise<void>
  /**
   * Fails messages that cannot be read, so that they are retried and then become dead letters, like any other
   * message that cannot be processed. If this call fails, they are retried when their lease expires. With
   * autoAck they are already completed, so they are lost.
   */
  fail(
    unreadable: readonly UnreadableMessage[],
    options: { readonly autoAck: boolean },
  ): Promise<void>
}

export function createUndelivered(context: BrokerContext): Undelivered {
  const { sidecar, log, clock, phase } = context
  const pauseBefore = createGiveBackPace()

  function release(leaseIds: Iterable<string>): void {
    for (const leaseId of leaseIds) {
      sidecar.submit({ kind: 'RELEASE', leaseId }).catch((error: unknown) => {
        log.warn({ err: error, leaseId }, 'could not release an undelivered lease')
      })
    }
  }

  return {
    release,
    async giveBack(leases) {
      const nowMs = clock.nowMs()
      const pauseMs = Math.max(...leases.map(({ queue }) => pauseBefore(queue, nowMs)))
      if (!phase.isDraining) await delay(pauseMs)
      release(new Set(leases.map(({ leaseId }) => leaseId)))
    },
    async fail(unreadable, { autoAck }) {
      if (unreadable.length === 0) return
      const messageIds = unreadable.map(({ message }) => message.id)
      log.error({ messageIds, autoAck }, 'stored messages cannot be decrypted or sent')
      if (autoAck) return
      const items = unreadable.map(({ lease: { leaseId, partitionId }, message, error }) => ({
        leaseId,
        message: { partitionId, seq: message.seq },
        status: 'failed' as const,
        errorCode: 'message_unreadable',
        errorMessage: error.message,
      }))
      await sidecar.submit({ kind: 'ACK_BATCH', items }).catch((error: unknown) => {
        log.warn({ err: error, messageIds }, 'could not fail unreadable messages')
      })
    },
  }
}

const pauseMsFirst = 50
const pauseMsMax = 1_000
const streakMs = 10_000
const queuesMax = 1_000

/**
 * How long a worker keeps messages that it cannot deliver, usually because it lacks a key, before it releases
 * them: the first time not at all, then 50 ms, doubled each time. Without the delay the next waiter of the
 * worker would get them again at once, in a tight loop. No attempt is charged. Otherwise a key that is
 * missing for an hour could turn all messages of a queue into dead letters.
 */
function createGiveBackPace(): (queue: string, nowMs: number) => number {
  const streaks = new Map<string, { readonly pauseMs: number; readonly atMs: number }>()
  return (queue, nowMs) => {
    const last = streaks.get(queue)
    const isStreak = last !== undefined && nowMs - last.atMs < streakMs
    const pauseMs = isStreak ? Math.min(Math.max(last.pauseMs * 2, pauseMsFirst), pauseMsMax) : 0
    if (streaks.size >= queuesMax) streaks.clear()
    streaks.set(queue, { pauseMs, atMs: nowMs })
    return pauseMs
  }
}
