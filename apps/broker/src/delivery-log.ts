// Structured events of a message's life, at debug level: claimed, completed, failed. An ack names neither queue nor
// attempt, so the worker remembers what it delivered while somebody listens, up to a limit.
import type { Lease } from '@rouse/sidecar'
import type { Logger } from './log.ts'

const claimsMax = 10_000

export interface EndedDelivery {
  readonly leaseId: string
  readonly partitionId: string
  readonly seq: number
  readonly transactionId: string
  readonly status: string
  readonly deadLettered: boolean
}

export interface DeliveryLog {
  claimed(leases: readonly Lease[], group: string): void
  ended(delivery: EndedDelivery): void
}

interface Claim {
  readonly queue: string
  readonly attempt: number
  readonly atMs: number
}

export function createDeliveryLog(log: Logger, nowMs: () => number): DeliveryLog {
  const claims = new Map<string, Claim>()

  function remember(key: string, claim: Claim): void {
    if (claims.size >= claimsMax) claims.delete(claims.keys().next().value as string)
    claims.set(key, claim)
  }

  return {
    claimed(leases, group) {
      if (!log.isLevelEnabled('debug')) return
      const atMs = nowMs()
      for (const { leaseId, queue, partitionId, partition, attempt, messages } of leases) {
        for (const { id, seq, transactionId } of messages) {
          remember(`${leaseId}/${partitionId}/${seq}`, { queue, attempt, atMs })
          const ids = { messageId: id, transactionId, partitionId, seq, leaseId }
          log.debug({ event: 'claimed', queue, partition, group, ...ids, attempt }, 'claimed')
        }
      }
    },
    ended({ leaseId, partitionId, seq, transactionId, status, deadLettered }) {
      if (!log.isLevelEnabled('debug')) return
      const key = `${leaseId}/${partitionId}/${seq}`
      const claim = claims.get(key)
      claims.delete(key)
      const event = status === 'completed' ? 'completed' : 'failed'
      log.debug(
        {
          event,
          status,
          queue: claim?.queue,
          attempt: claim?.attempt,
          durationMs: claim === undefined ? undefined : Math.round(nowMs() - claim.atMs),
          transactionId,
          partitionId,
          seq,
          leaseId,
          ...(event === 'failed' ? { willRetry: !deadLettered && status !== 'dlq' } : {}),
        },
        event,
      )
    },
  }
}
