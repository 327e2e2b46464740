// What a history is made of: one record for every request on the wire (or SQL call) with what its
// client heard, one for every fault, and the audit of the tables at the end. One JSON line each.
//
// Times are milliseconds on CLOCK_MONOTONIC, which all processes of a machine share (clock.ts).

/** ok: a 2xx or a commit. fail: certainly nothing happened. unknown: it may have happened. */
export type Outcome = 'ok' | 'fail' | 'unknown'

interface Call {
  /** Which client: a name that no other client of the run has. */
  readonly process: string
  readonly start: number
  readonly end: number
  readonly outcome: Outcome
  /** The workload it belongs to, and thereby which rules its queues are held to. */
  readonly workload: string
  /** The status of an HTTP answer; absent where none came. */
  readonly status?: number
  /** The code of a problem document, a SQLSTATE, or the system's word for a broken connection. */
  readonly code?: string
}

export interface PushedItem {
  readonly queue: string
  readonly partition: string
  /** The payload's `v`: names one intended message. A retry of a push carries the same value. */
  readonly value: string
  /** The transactionId, where the client gave one. */
  readonly key?: string
  /** Must not be delivered so soon after the push. */
  readonly delayMs?: number
  /** What it is worth, where a workload keeps a sum: transactions move it, and none may appear or vanish. */
  readonly amount?: number
  /** From an ok answer. */
  readonly result?: { readonly status: 'queued' | 'duplicate' | 'scheduled'; readonly id: string }
}

export interface PushRecord extends Call {
  readonly kind: 'push'
  /** sql: by rouse.enqueue in a transaction of the client's own. */
  readonly by: 'http' | 'sql'
  readonly items: readonly PushedItem[]
}

export interface PoppedMessage {
  readonly queue: string
  readonly partition: string
  readonly partitionId: string
  readonly value: string
  readonly id: string
  readonly transactionId: string
  readonly seq: string
  readonly attempt: number
  /** The message's own lease token, as its ack must carry it. */
  readonly leaseId: string
  /** As pushed. */
  readonly amount?: number
}

export interface PopRecord extends Call {
  readonly kind: 'pop'
  /** Or `namespace n`, `task t`. */
  readonly queue: string
  readonly group: string
  readonly waitMs: number
  /** How long the queue leases. */
  readonly leaseMs: number
  readonly messages: readonly PoppedMessage[]
  /** Acks that rode along (ack and fetch); each with its result if the answer came. */
  readonly acks: readonly AckedItem[]
}

export interface AckedItem {
  readonly leaseId: string
  readonly transactionId: string
  readonly partitionId: string
  readonly value: string
  readonly status: 'completed' | 'failed' | 'retry' | 'dlq'
  /** Of an ok answer: taken, or refused as stale. */
  readonly success?: boolean
}

export interface AckRecord extends Call {
  readonly kind: 'ack'
  readonly group: string
  readonly acks: readonly AckedItem[]
  /** A transaction: these were pushed if and only if the acks were taken. */
  readonly pushes?: readonly PushedItem[]
}

/** Extends or gives back the lease that the token belongs to (and all its pop handed out). */
export interface LeaseRecord extends Call {
  readonly kind: 'extend' | 'release'
  readonly leaseId: string
  /** Of an extension. */
  readonly seconds?: number
}

/**
 * What an operator, or a new group, asked of a whole queue. A redrive ends when all letters have been moved, or when it is
 * certain that none will be moved any more.
 */
export interface OperatorRecord extends Call {
  readonly kind: 'purge' | 'seek' | 'redrive' | 'subscribe'
  readonly queue: string
  /** Of a seek and a subscription. */
  readonly group?: string
  /** Of a seek and a subscription: what was pushed from then on is delivered, on the clock of the history. */
  readonly from?: 'all' | 'new' | number
}

/** The queues whose calls a fault may make slow; those of all others must not notice it. */
export interface MayHarm {
  readonly pushes: readonly string[]
  readonly pops: readonly string[]
}

/** A fault that the nemesis made, or could not make. */
export interface FaultRecord {
  readonly kind: 'fault'
  readonly name: string
  readonly start: number
  /** Healed: everything is back, as far as the nemesis can tell. */
  readonly end: number
  /** What was hit: `node-2`, `worker 4711`, … */
  readonly target: string
  /** True where the database may forget its newest leases (crash, failover): promise 7. */
  readonly forgetsLeases: boolean
  /** Set where it touches single queues: the rule `hostile neighbours` holds for the others. */
  readonly mayHarm?: MayHarm
  /** When the database itself was too slow to judge anybody by: a commit of the harness took too long. */
  readonly slowCommits?: readonly { readonly from: number; readonly to: number }[]
  /** Set where the fault was not made: what permission or program it lacks. */
  readonly skipped?: string
}

/** What the tables hold once every queue is drained, read from the database by the harness. */
export interface AuditRecord {
  readonly kind: 'audit'
  /** Groups that could not be worked off in time. */
  readonly undrained: readonly { queue: string; group: string; left: number }[]
  readonly leases: number
  readonly scheduled: number
  readonly deadLetters: readonly {
    queue: string
    group: string
    value: string
    attempts: number
  }[]
  /** Contradictions between tables, in words. */
  readonly contradictions: readonly string[]
}

/** What the checkers must know of a queue to judge it. One record for every queue of the run. */
export interface QueueRecord {
  readonly kind: 'queue'
  readonly queue: string
  readonly workload: string
  /** `partition` means: and `onFailure=hold`. Those are held to the order rules. */
  readonly ordering: 'partition' | 'none'
  /** The groups that each get every message; they subscribed before the first push. */
  readonly groups: readonly string[]
  /** As configured: so many retries, and then the dead letters. */
  readonly retryLimit: number
  /** 0: no deduplication. */
  readonly dedupWindowMs: number
  /** Set where waiters are idle (ordering `none`): a push must reach one so soon, outside of faults. */
  readonly wakeMsMax?: number
  /** Set where messages carry amounts that transactions move from stage to stage, from 1 up. */
  readonly stage?: number
  /** Set where what nobody has consumed is removed when it is so old. */
  readonly retentionMs?: number
  /** By what else than its name it is popped: `namespace n`, `task t`. */
  readonly sources?: readonly string[]
}

export type CallRecord = PushRecord | PopRecord | AckRecord | LeaseRecord | OperatorRecord
/** What is no call: noted by the harness itself. */
export type Note = FaultRecord | AuditRecord | QueueRecord
export type HistoryRecord = CallRecord | Note
