// What a worker can ask of its SidecarDbPool, and what it gets back.
import type {
  AckItem,
  Lease,
  PopRequest,
  PushedItem,
  PushItem,
  TransactionRequest,
  TransactionResult,
} from '@rouse/storage'

/** Tells that a client has left; an AbortSignal is one. Thousands of waiters have one each, so it may be less. */
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
  readonly subscription?: PopRequest['subscription']
  readonly holder: string
}

export type Operation =
  /** One request's messages: all or nothing, together with others in one SQL call. */
  | { readonly kind: 'PUSH'; readonly items: readonly PushItem[]; readonly bytes: number }
  | { readonly kind: 'POP'; readonly pop: PopSpec; readonly signal?: LeaveSignal | undefined }
  /** Waits until messages come, the deadline passes, the client leaves (signal), or the worker drains. */
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
  | { readonly kind: 'RENEW_LEASE'; readonly leaseId: string; readonly durationMs: number }
  /** Gives back what a lease still holds, uncharged. */
  | { readonly kind: 'RELEASE'; readonly leaseId: string }

export type OperationKind = Operation['kind']

export interface AckOutcome {
  readonly accepted: boolean
  readonly deadLettered: boolean
}

export interface PopResponse {
  /** Empty at the deadline, on drain, and for a no-wait pop that found nothing. */
  readonly leases: readonly Lease[]
  readonly paused: boolean
  /** The worker drains: tell the client to reconnect elsewhere. */
  readonly draining: boolean
}

/** What `submit` resolves to, by kind. */
export interface OperationResults {
  PUSH: PushedItem[]
  POP: PopResponse
  POP_WAIT: PopResponse
  ACK: AckOutcome
  ACK_BATCH: AckOutcome[]
  TRANSACTION: TransactionResult
  /** The new expiry in ms since 1970, or null where the lease is lost. */
  RENEW_LEASE: number | null
  /** Whether the lease was still held. */
  RELEASE: boolean
}
