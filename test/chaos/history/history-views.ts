// The checkers' view of a history: short-lived objects, made on demand from its columns (history.ts).
import type { AckedItem, Outcome } from './records.ts'

/** One item of a push call, or of a transaction. */
export interface Pushed {
  /** The row in the table of pushed items. The items of a call have consecutive rows. */
  readonly row: number
  readonly call: number
  readonly by: 'http' | 'sql' | 'transaction'
  readonly process: string
  readonly start: number
  /** Infinity if the client died before the response. */
  readonly end: number
  readonly outcome: Outcome
  readonly partition: string
  /** The transactionId given by the client, as a number (-1: none). */
  readonly key: number
  readonly delayMs: number
  /**
   * From an ok response: the status of the item, and the message's id as a number (-1: not in the response).
   */
  readonly status: 'queued' | 'duplicate' | 'scheduled' | undefined
  readonly id: number
}

/** One message leased to one client. */
export interface Delivery {
  readonly row: number
  readonly message: number
  readonly pop: number
  readonly process: string
  readonly queue: string
  readonly group: string
  readonly partition: string
  readonly id: number
  readonly seq: number
  readonly attempt: number
  readonly amount: number
  readonly start: number
  readonly end: number
  readonly leaseMs: number
  readonly begins: number
  readonly expiresMin: number
  readonly expiresMax: number
  /** The earliest and the latest time at which its lease may have been released; Infinity: never. */
  readonly releasedMin: number
  readonly releasedMax: number
  readonly acks: readonly Acked[]
}

/** An ack of one delivery, in a call that did not fail. */
export interface Acked {
  readonly call: number
  readonly start: number
  readonly end: number
  readonly status: AckedItem['status']
  readonly taken: 'yes' | 'no' | 'unknown'
  readonly transaction: boolean
}

export interface Message {
  readonly row: number
  readonly queue: string
  readonly value: string
  readonly pushes: readonly Pushed[]
  /** Ordered by the time of their responses. */
  readonly deliveries: readonly Delivery[]
}

/** One group in one partition. */
export interface Lane {
  readonly queue: string
  readonly group: string
  readonly partition: string
  readonly deliveries: readonly Delivery[]
}

/** An ack call that also pushed. */
export interface Transaction {
  readonly call: number
  readonly start: number
  readonly end: number
  readonly outcome: Outcome
  readonly process: string
  /** The deliveries it acknowledged; -1 if the history has no pop with that lease. */
  readonly acked: readonly number[]
  /** The messages it pushed. */
  readonly pushed: readonly number[]
}

export interface Pop {
  readonly process: string
  readonly start: number
  readonly end: number
  readonly outcome: Outcome
  readonly waitMs: number
}

export interface PushCall {
  readonly process: string
  readonly start: number
  /** Infinity if the client died before the response. */
  readonly end: number
  readonly outcome: Outcome
  readonly by: Pushed['by']
  readonly items: number
  readonly queues: readonly string[]
}
