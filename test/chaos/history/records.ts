// The records of a history: one for every HTTP request or SQL call with its result as the client saw it, one
// for every fault, and one for the audit of the tables at the end. One JSON line each.
//
// Times are milliseconds on CLOCK_MONOTONIC, which all processes of a machine share (clock.ts).

/**
 * ok: the response was 2xx, or the commit succeeded. fail: the call certainly had no effect. unknown: the
 * call may have had an effect.
 */
export type Outcome = 'ok' | 'fail' | 'unknown'

interface Call {
  /** The name of the client, unique within the run. */
  readonly process: string
  readonly start: number
  readonly end: number
  readonly outcome: Outcome
  /** The workload of the client, which determines the rules for its queues. */
  readonly workload: string
  /** The HTTP status; absent if there was no response. */
  readonly status?: number
  /** The code of a problem document, a SQLSTATE, or the system's code of a connection error. */
  readonly code?: string
}

export interface PushedItem {
  readonly queue: string
  readonly partition: string
  /** The payload's `v`, which identifies one intended message. A retried push carries the same value. */
  readonly value: string
  /** The transactionId, if the client gave one. */
  readonly key?: string
  /** The message must not be delivered before this much time has passed since the push. */
  readonly delayMs?: number
  /** The amount, in workloads that check a sum: transactions move it, and the sum must stay the same. */
  readonly amount?: number
  /** Set if the response was ok. */
  readonly result?: { readonly status: 'queued' | 'duplicate' | 'scheduled'; readonly id: string }
}

export interface PushRecord extends Call {
  readonly kind: 'push'
  /** sql: by rouse.enqueue in the client's own transaction. */
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
  /** Names this delivery of the message. */
  readonly receipt: string
  /** The lease of its pop. */
  readonly leaseId: string
  /** The amount of the pushed item. */
  readonly amount?: number
}

export interface PopRecord extends Call {
  readonly kind: 'pop'
  /** A queue name, `namespace n` or `task t`. */
  readonly queue: string
  readonly group: string
  readonly waitMs: number
  /** The lease time that the pop requests, or that of the queue. */
  readonly leaseMs: number
  readonly messages: readonly PoppedMessage[]
  /** The acks sent with the pop (ack and fetch), each with its result if there was a response. */
  readonly acks: readonly AckedItem[]
}

export interface AckedItem {
  readonly receipt: string
  readonly transactionId: string
  readonly partitionId: string
  readonly value: string
  readonly status: 'completed' | 'failed' | 'retry' | 'dlq'
  /** Set if the response was ok: true if the ack was accepted, false if it was refused as stale. */
  readonly success?: boolean
}

export interface AckRecord extends Call {
  readonly kind: 'ack'
  readonly group: string
  readonly acks: readonly AckedItem[]
  /** Set for a transaction: the items that are pushed if and only if the acks are accepted. */
  readonly pushes?: readonly PushedItem[]
}

/** Extends or releases the lease of this delivery, with all messages of its pop. */
export interface LeaseRecord extends Call {
  readonly kind: 'extend' | 'release'
  readonly receipt: string
  /** The duration of an extension, as requested. */
  readonly seconds?: number
  /**
   * How long the lease lasts after the response: less than requested if an ack_in transaction has locked it.
   */
  readonly lastsMs?: number
}

/**
 * An operation on a whole queue, by an operator or a new group. A redrive ends when all dead letters were
 * moved, or when it is certain that no more will be moved.
 */
export interface OperatorRecord extends Call {
  readonly kind: 'purge' | 'seek' | 'redrive' | 'subscribe'
  readonly queue: string
  /** Set for a seek and a subscription. */
  readonly group?: string
  /**
   * Set for a seek and a subscription: messages pushed from this time on are delivered. A number is a time on
   * the history's clock.
   */
  readonly from?: 'all' | 'new' | number
}

/** Cancels one message. A refusal, because the message is leased or has ended, is `fail`. */
export interface CancelRecord extends Call {
  readonly kind: 'cancel'
  readonly id: string
}

/** The queues whose calls a fault may slow down; calls on other queues must not be affected. */
export interface MayHarm {
  readonly pushes: readonly string[]
  readonly pops: readonly string[]
}

/** A fault that the nemesis injected, or could not inject. */
export interface FaultRecord {
  readonly kind: 'fault'
  readonly name: string
  readonly start: number
  /** When the fault was healed, as far as the nemesis can tell. */
  readonly end: number
  /** What was affected: `node-2`, `worker 4711`, … */
  readonly target: string
  /** True if the database may forget its newest leases after a crash or failover (promise 7). */
  readonly forgetsLeases: boolean
  /** Set if the fault affects single queues: the rule `hostile neighbours` checks the others. */
  readonly mayHarm?: MayHarm
  /**
   * The times at which the database itself was too slow to check time limits, because a probe commit of the
   * harness took too long.
   */
  readonly slowCommits?: readonly { readonly from: number; readonly to: number }[]
  /** Set if the fault was not injected: what was missing, for example a permission, a program, or time. */
  readonly skipped?: string
}

/** The contents of the tables after the drain, read by the harness. */
export interface AuditRecord {
  readonly kind: 'audit'
  /** Groups that were not drained in time. */
  readonly undrained: readonly { queue: string; group: string; left: number }[]
  readonly leases: number
  readonly scheduled: number
  readonly deadLetters: readonly {
    queue: string
    group: string
    value: string
    attempts: number
  }[]
  /** Descriptions of rows that contradict each other. */
  readonly contradictions: readonly string[]
  /** Messages that do not have the result of their ack, in queues in which every ack returns one. */
  readonly withoutResult?: readonly string[]
}

/** What the checkers need to know about a queue. One record per queue of the run. */
export interface QueueRecord {
  readonly kind: 'queue'
  readonly queue: string
  readonly workload: string
  /** The order rules apply to queues with ordering `partition`. These also have `onFailure=hold`. */
  readonly ordering: 'partition' | 'keyed' | 'none'
  /** The groups that get every message; they subscribed before the first push. */
  readonly groups: readonly string[]
  /** The configured number of retries before a message becomes a dead letter. */
  readonly retryLimit: number
  /** 0: no deduplication. */
  readonly dedupWindowMs: number
  /**
   * The time limit for a wake-up outside of faults. Set if the queue has idle waiters; its ordering is then
   * `none`.
   */
  readonly wakeMsMax?: number
  /**
   * The number of the stage, from 1 up. Set if messages carry amounts that transactions move from stage to
   * stage.
   */
  readonly stage?: number
  /** Messages of this age are removed even if they were not consumed. */
  readonly retentionMs?: number
  /** The value of a message ends with its unique key. */
  readonly hasUniqueKeys?: true
  /** The value of a message ends with its priority. */
  readonly hasPriorities?: true
  /** The queue whose given-up messages are moved into this one; nothing else is stored in it. */
  readonly lettersOf?: string
  /** Other sources through which the queue is popped: `namespace n`, `task t`. */
  readonly sources?: readonly string[]
}

export type CallRecord =
  | PushRecord
  | PopRecord
  | AckRecord
  | LeaseRecord
  | OperatorRecord
  | CancelRecord
/** Records that are not calls, written by the harness itself. */
export type Note = FaultRecord | AuditRecord | QueueRecord
export type HistoryRecord = CallRecord | Note
