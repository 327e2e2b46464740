// Logs the events of a message's life at debug level: claimed, completed, failed. An ack does not name the
// queue and the attempt, and an ack of a whole lease does not name the messages. So the worker keeps a
// limited number of its deliveries in memory, but only at debug level.
import { transactionIdFor } from '@rouse/protocol'
import type { Lease } from '@rouse/storage'
import type { Logger } from '../log.ts'

const claimsMax = 10_000

export interface DeliveryEnding {
  readonly status: string
  readonly deadLettered: boolean
}

export interface EndedDelivery extends DeliveryEnding {
  readonly leaseId: string
  readonly partitionId: string
  readonly seq: number
  /** Undefined if the message was acknowledged by its receipt alone. */
  readonly transactionId: string | undefined
}

type Ids = Pick<EndedDelivery, 'leaseId'> & Partial<EndedDelivery>

export interface DeliveryLog {
  claimed(leases: readonly Lease[], group: string): void
  ended(delivery: EndedDelivery): void
  /** Logs the end of every message that the lease still held. */
  leaseEnded(leaseId: string, ending: DeliveryEnding): void
}

interface Claim {
  readonly queue: string
  readonly attempt: number
  readonly atMs: number
  readonly partitionId: string
  readonly seq: number
  readonly transactionId: string
}

/** Undefined unless the log level is debug. */
export function createDeliveryLog(log: Logger, nowMs: () => number): DeliveryLog | undefined {
  if (!log.isLevelEnabled('debug')) return undefined
  const claims = new Claims()

  function logEnded(
    ids: Ids,
    { status, deadLettered }: DeliveryEnding,
    claim: Claim | undefined,
  ): void {
    const event = status === 'completed' ? 'completed' : 'failed'
    log.debug(
      {
        event,
        status,
        queue: claim?.queue,
        attempt: claim?.attempt,
        durationMs: claim === undefined ? undefined : Math.round(nowMs() - claim.atMs),
        ...ids,
        ...(event === 'failed' ? { willRetry: !deadLettered && status !== 'dlq' } : {}),
      },
      event,
    )
  }

  return {
    claimed(leases, group) {
      const atMs = nowMs()
      for (const { leaseId, queue, partitionId, partition, attempt, messages } of leases) {
        for (const { id, seq, transactionId: given } of messages) {
          const transactionId = given ?? transactionIdFor(partitionId, seq)
          claims.add(leaseId, { queue, attempt, atMs, partitionId, seq, transactionId })
          const ids = { messageId: id, transactionId, partitionId, seq, leaseId }
          log.debug({ event: 'claimed', queue, partition, group, ...ids, attempt }, 'claimed')
        }
      }
    },
    ended({ leaseId, partitionId, seq, transactionId, ...ending }) {
      const claim = claims.take(leaseId, partitionId, seq)
      const ids = {
        transactionId: transactionId ?? claim?.transactionId,
        partitionId,
        seq,
        leaseId,
      }
      logEnded(ids, ending, claim)
    },
    leaseEnded(leaseId, ending) {
      const held = claims.takeAll(leaseId)
      for (const claim of held) {
        const { transactionId, partitionId, seq } = claim
        logEnded({ transactionId, partitionId, seq, leaseId }, ending, claim)
      }
      // Another worker delivered the lease, so its messages are not known here.
      if (held.length === 0) logEnded({ leaseId }, ending, undefined)
    },
  }
}

/** Delivered messages that are not finished, by lease. Above the limit the oldest leases are dropped. */
class Claims {
  readonly #leases = new Map<string, Map<string, Claim>>()
  #count = 0

  add(leaseId: string, claim: Claim): void {
    const lease = this.#leases.get(leaseId) ?? new Map<string, Claim>()
    this.#leases.set(leaseId, lease)
    lease.set(`${claim.partitionId}/${claim.seq}`, claim)
    this.#count += 1
    while (this.#count > claimsMax) this.takeAll(this.#leases.keys().next().value as string)
  }

  take(leaseId: string, partitionId: string, seq: number): Claim | undefined {
    const lease = this.#leases.get(leaseId)
    const key = `${partitionId}/${seq}`
    const claim = lease?.get(key)
    if (lease === undefined || claim === undefined) return undefined
    lease.delete(key)
    this.#count -= 1
    if (lease.size === 0) this.#leases.delete(leaseId)
    return claim
  }

  takeAll(leaseId: string): readonly Claim[] {
    const lease = this.#leases.get(leaseId)
    if (lease === undefined) return []
    this.#leases.delete(leaseId)
    this.#count -= lease.size
    return [...lease.values()]
  }
}
