// The operations of a SidecarDbPool and their results.
import type {
  AckItem,
  AwaitedMessage,
  CommittedTransaction,
  Extended,
  Extension,
  Lease,
  NewMessage,
  PopRequest,
  ProgressReport,
  PushedMessage,
  TransactionRequest,
} from '@rouse/storage'
import type { EndOutcome } from './ends/end-waits.ts'

/**
 * Fires when a client disconnects. An AbortSignal can be used; with thousands of waiters a lighter object is
 * better.
 */
export interface LeaveSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** A pop by one client. */
export interface PopSpec {
  readonly source: PopRequest['source']
  readonly group: string
  readonly batch: number
  readonly partitions: number
  readonly leaseMs?: number | undefined
  readonly autoAck?: boolean | undefined
  /** Each message gets its own lease. */
  readonly leasePerMessage?: boolean | undefined
  readonly subscription?: PopRequest['subscription']
  readonly holder: string
}

export type Operation =
  /** The messages of one request: either all are stored or none. Other requests may share the SQL call. */
  | { readonly kind: 'PUSH'; readonly items: readonly NewMessage[]; readonly bytes: number }
  | { readonly kind: 'POP'; readonly pop: PopSpec; readonly signal?: LeaveSignal | undefined }
  /**
   * Waits until a message arrives, the deadline passes, the client disconnects (signal), or the worker
   * drains.
   */
  | {
      readonly kind: 'POP_WAIT'
      readonly pop: PopSpec
      readonly timeoutMs: number
      readonly signal: LeaveSignal
    }
  | { readonly kind: 'ACK'; readonly item: AckItem; readonly group?: string | undefined }
  | {
      readonly kind: 'ACK_BATCH'
      readonly items: readonly AckItem[]
      readonly group?: string | undefined
    }
  | { readonly kind: 'TRANSACTION'; readonly transaction: TransactionRequest }
  | ({ readonly kind: 'RENEW_LEASE' } & Extension)
  /** Reports how far the holder of a message is. */
  | { readonly kind: 'PROGRESS'; readonly report: ProgressReport }
  /** Waits until a message of the queue has ended, as POP_WAIT waits for messages. */
  | {
      readonly kind: 'END_WAIT'
      readonly queue: string
      readonly message: AwaitedMessage
      readonly timeoutMs: number
      readonly signal: LeaveSignal
    }
  /** Returns the remaining messages of a lease without charging an attempt. */
  | { readonly kind: 'RELEASE'; readonly leaseId: string }

export type OperationKind = Operation['kind']

export interface AckOutcome {
  readonly accepted: boolean
  readonly deadLettered: boolean
}

export interface PopResponse {
  /** Empty at the deadline, on drain, and for a no-wait pop that finds nothing. */
  readonly leases: readonly Lease[]
  readonly paused: boolean
  /** The worker is draining: the client should reconnect to another one. */
  readonly draining: boolean
}

/** What `submit` resolves to, by kind. */
export interface OperationResults {
  PUSH: PushedMessage[]
  POP: PopResponse
  POP_WAIT: PopResponse
  ACK: AckOutcome
  ACK_BATCH: AckOutcome[]
  TRANSACTION: CommittedTransaction
  /** Null if the lease is lost. */
  RENEW_LEASE: Extended | null
  /** Whether the lease still holds the message. */
  PROGRESS: boolean
  END_WAIT: EndOutcome
  /** Whether the lease was still held. */
  RELEASE: boolean
}
