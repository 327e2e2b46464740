import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { Original } from '../server/copy.ts'

/** A failed message that blocks its lane. */
export interface HeldLane {
  readonly partition: string | null
  readonly partitionId: string
  readonly transactionId: string
  readonly messageId: string | null
  readonly behind: number
  readonly attempts: number
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly dueAt: number
}

/** A group without a request for a day or longer. Retention counts its messages every ten minutes. */
export interface IdleFacts {
  /** The start of its idle time. */
  readonly since: number
  readonly messages: number
  readonly isPartial: boolean
  readonly oldestAt: number | null
  readonly letGoAt: number | null
}

/** Times are ms since 1970 by the database clock. */
export interface GroupFacts {
  readonly consumerGroup: string
  readonly lastSeenAt: number
  readonly idle: IdleFacts | null
  readonly inFlight: number
  readonly firstExpiresAt: number | null
  readonly lastExpiresAt: number | null
  readonly holder: string | null
  /** Messages that a pop would get now. */
  readonly ready: number
  /** How many of them have a priority, and the highest one; null: none is ready. */
  readonly prioritized: number
  readonly topPriority: number | null
  /** Messages that were not delivered within their ttlMs, and that no pop has passed yet. */
  readonly expired: number
  readonly leasedLanes: number
  readonly behindLeases: number
  /** When the rate of the queue allows the group more messages; null: it does. */
  readonly rateOpensAt: number | null
  /** Partitions of which the group holds as many messages as it may, and the messages behind them. */
  readonly fullLanes: number
  readonly behindFull: number
  /** Partitions whose rate is used up, until when, and the messages behind them. */
  readonly ratedLanes: number
  readonly ratedUntil: number | null
  readonly behindRate: number
  readonly heldLanes: number
  /** The lanes that have the most messages behind their failed message. */
  readonly held: readonly HeldLane[]
  readonly gatheringLanes: number
  readonly gatheringUntil: number | null
  readonly retries: number
  readonly nextRetryAt: number | null
  readonly dead: number
}

/** A unique key whose message a group has begun, or that is not due yet. */
export interface HeldKey {
  readonly key: string
  readonly messageId: string
  readonly state: 'scheduled' | 'started'
  /** The group that has it or will try it again; null: none. */
  readonly consumerGroup: string | null
  /** The end of the window; null: until the message ends. */
  readonly until: number | null
}

export interface QueueFacts {
  readonly now: number
  readonly namespace: string | null
  readonly task: string | null
  readonly paused: boolean
  readonly ordering: 'keyed' | 'partition' | 'none'
  readonly sizeMax: number
  readonly size: number | null
  readonly inFlightMax: number
  readonly partitionInFlightMax: number
  readonly rateLimit: number
  readonly ratePerMs: number
  readonly partitionRateLimit: number
  readonly partitionRatePerMs: number
  readonly windowMs: number
  /** If this database is a copy that was not adopted. */
  readonly copyOf: Original | null
  /** The age in ms at which unconsumed messages are removed; null: never. */
  readonly evictMs: number | null
  readonly messages: number
  readonly scheduled: number
  readonly nextDueAt: number | null
  readonly groups: readonly GroupFacts[]
  /** At most five; undefined in a database of the previous release. */
  readonly heldKeys?: readonly HeldKey[]
}

/** Undefined if there is no such queue. */
export async function queueFacts(
  pool: pg.Pool,
  queue: string,
  group: string | undefined,
): Promise<QueueFacts | undefined> {
  const [row] = await callStatement(pool, 'select rouse.why($1, $2)', [queue, group])
  return (row?.[0] as QueueFacts | null) ?? undefined
}
