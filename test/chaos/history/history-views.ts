// What the checkers see of a history: made on demand from its columns (history.ts), short-lived.
import type { AckedItem, Outcome } from './records.ts'

/** One item of a push call, or of a transaction. */
export interface Pushed {
  /** Within a call, in the order of its items. */
  readonly row: number
  readonly call: number
  readonly by: 'http' | 'sql' | 'transaction'
  readonly process: string
  readonly start: number
  /** Infinity where the client died before it heard. */
  readonly end: number
  readonly outcome: Outcome
  readonly partition: string
  /** The transactionId that the client gave, by number (-1: none). */
  readonly key: number
  readonly delayMs: number
  /** Of an ok answer: what became of it, and the message's id by number (-1: not told). */
  readonly status: 'queued' | 'duplicate' | 'scheduled' | undefined
  readonly id: number
}

/** One message handed to one client under one lease. */
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
  /** The earliest moment at which its lease may have been given back, and the latest; Infinity: it was not. */
  readonly releasedMin: number
  readonly releasedMax: number
  readonly acks: readonly Acked[]
}

/** An acknowledgement of one delivery that was not refused as a whole. */
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
  /** By when their answers came. */
  readonly deliveries: readonly Delivery[]
}

/** One group's view of one partition. */
export interface Lane {
  readonly queue: string
  readonly group: string
  readonly partition: string
  readonly deliveries: readonly Delivery[]
}

/** An acknowledgement call that pushed, too. */
export interface Transaction {
  readonly call: number
  readonly start: number
  readonly end: number
  readonly outcome: Outcome
  readonly process: string
  /** Deliveries acknowledged by it (-1: of a lease that no pop of the history handed out). */
  readonly acked: readonly number[]
  /** Messages pushed by it. */
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
  /** Infinity where the client died before it heard. */
  readonly end: number
  readonly outcome: Outcome
  readonly by: Pushed['by']
  readonly items: number
  readonly queues: readonly string[]
}
