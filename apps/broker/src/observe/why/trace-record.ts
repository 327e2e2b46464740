// What nodes remember of single messages. Times are milliseconds since 1970 by the clock of the database, except
// where a name says otherwise: nodes do not compare their own clocks.
//
// A push, a delivery and its ack may reach three workers of three nodes. Each records its own part: the parts of a delivery
// have the id of the lease in common, and are joined when they are read (join-acks.ts).

export interface PushRecord {
  readonly kind: 'push'
  readonly id: string
  readonly node: string
  readonly worker: number
  /** From the request to the commit. */
  readonly ms: number
}

/** Which worker of which node. */
export interface WorkerName {
  readonly node: string
  readonly worker: number
}

/** What is known of a pop. */
export interface Popped extends WorkerName {
  readonly group: string
  readonly attempt: number
  readonly holder: string
  readonly leaseId: string
  readonly poppedAtMs: number
  /** The same moment by the clock of the node. */
  readonly poppedWallMs: number
  /** What caused the pop. */
  readonly source: string
  readonly hintMs: number
  readonly popMs: number
  /** How long the pop had waited before its SQL call began. */
  readonly waitedMs: number
  /** From the pop to the response; null: not sent, or not recorded. */
  answeredMs: number | null
}

export interface DeliveryRecord extends Popped {
  readonly kind: 'delivery'
  readonly id: string
  readonly seq: number
  /** When the message entered the queue. */
  readonly enteredAtMs: number
  /** From the pop to the ack; null: not recorded here. */
  ackedMs: number | null
  status: string | null
  ackedBy: WorkerName | null
}

/** A lease that is open, or that was held for long and kept other messages of its partition waiting. */
export interface LeaseRecord extends Popped {
  readonly kind: 'lease'
  readonly partitionId: string
  /** Its first message. */
  readonly id: string
  readonly seq: number
  readonly lastSeq: number
  readonly expiresAtMs: number
  /** From the pop to the last ack; null: none is recorded here. */
  endedMs: number | null
  /** Whether it holds no message any more. */
  isEnded: boolean
  status: string | null
}

/** An ack that went through a worker other than that of the pop, or whose lease was held for long. */
export interface AckRecord extends WorkerName {
  readonly kind: 'ack'
  readonly leaseId: string
  /** Null: everything that the lease held. */
  readonly message: { readonly partitionId: string; readonly seq: number } | null
  readonly status: string
  /** By the clock of the node. */
  readonly wallMs: number
  /** Null until the primary has added it. */
  readonly atMs: number | null
}

/** A rate withheld messages of a queue. */
export interface LimitRecord {
  readonly kind: 'limit'
  readonly queue: string
  readonly group: string
  readonly fromMs: number
  readonly toMs: number
}

export type TraceRecord = PushRecord | DeliveryRecord | LeaseRecord | AckRecord | LimitRecord

export interface TraceRequest {
  readonly id: string
  readonly queue: string
  readonly partitionId: string | null
  readonly fromMs: number
  /** Leases whose acks are wanted. */
  readonly leaseIds?: readonly string[]
}

/** What one node remembers about a message. */
export interface NodeTraces {
  readonly records: readonly TraceRecord[]
  /** When the queue was paused and resumed through this node. */
  readonly pauses: readonly { readonly atMs: number; readonly paused: boolean }[]
}
