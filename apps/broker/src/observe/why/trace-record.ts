// What nodes remember of single messages. Times are milliseconds since 1970 by the clock of the database, except
// where a name says otherwise: nodes do not compare their own clocks.

export interface PushRecord {
  readonly kind: 'push'
  readonly id: string
  readonly node: string
  readonly worker: number
  /** From the request to the commit. */
  readonly ms: number
}

export interface DeliveryRecord {
  readonly kind: 'delivery'
  readonly id: string
  readonly node: string
  readonly worker: number
  readonly group: string
  readonly attempt: number
  readonly holder: string
  readonly leaseId: string
  readonly seq: number
  /** When the message entered the queue. */
  readonly enteredAtMs: number
  readonly poppedAtMs: number
  /** What caused the pop. */
  readonly source: string
  readonly hintMs: number
  readonly popMs: number
  /** How long the pop had waited before its SQL call began. */
  readonly waitedMs: number
  /** From the pop to the response; null: not sent. */
  answeredMs: number | null
  /** From the pop to the ack; null: no ack came to this worker. */
  ackedMs: number | null
  status: string | null
}

/** A lease that was held for long, and kept other messages of its partition waiting. */
export interface HoldRecord {
  readonly kind: 'hold'
  readonly partitionId: string
  readonly group: string
  readonly id: string
  readonly seq: number
  readonly attempt: number
  readonly holder: string
  readonly fromMs: number
  readonly toMs: number
  readonly status: string
}

/** A rate withheld messages of a queue. */
export interface LimitRecord {
  readonly kind: 'limit'
  readonly queue: string
  readonly group: string
  readonly fromMs: number
  readonly toMs: number
}

export type TraceRecord = PushRecord | DeliveryRecord | HoldRecord | LimitRecord

export interface TraceRequest {
  readonly id: string
  readonly queue: string
  readonly partitionId: string | null
  readonly fromMs: number
}

/** What one node remembers about a message. */
export interface NodeTraces {
  readonly records: readonly TraceRecord[]
  /** When the queue was paused and resumed through this node. */
  readonly pauses: readonly { readonly atMs: number; readonly paused: boolean }[]
}

/** One of 16 messages is recorded: every node chooses the same ones. The last digit of an id changes with the seq. */
export function isSampled(id: string): boolean {
  return id.endsWith('0')
}

/** A lease that is held for this share of the threshold keeps others waiting noticeably. */
export const heldShare = 0.25
