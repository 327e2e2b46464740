import { type Duration, parseDuration } from '../duration.ts'
import { RouseError } from '../rouse-error.ts'
import type { Message } from './message.ts'

/** Options of a worker. */
export interface WorkOptions {
  /** The most handlers at a time. Default 10. An ordered partition never has more than one. */
  readonly concurrency?: number | undefined
  /** How many messages may wait for a handler. Default: as many as are handled in a tenth of a second. */
  readonly prefetch?: number | undefined
  /** The lease time, in whole seconds; leases are renewed automatically. Default 60 s. */
  readonly lease?: Duration | undefined
  /** Consumes only this partition. */
  readonly partition?: string | undefined
  /**
   * Where a consumer group begins that does not exist yet: with all stored messages, with new ones, or at a
   * time. Default: `new` for a named group. The queue's default group always begins with all.
   */
  readonly from?: 'all' | 'new' | Date | undefined
  /** Handles one message of a partition at a time. Default: as the queue's `ordering` requires. */
  readonly ordered?: boolean | undefined
  /**
   * Keeps what the handler returns as the result of its message: JSON of at most 64 KiB. Default: if the queue
   * has the option `history: 'all'` and is not encrypted. A plain acknowledgement costs the server less.
   */
  readonly results?: boolean | undefined
  /** The name that leases, attempts and dead letters show. Default: that of the client. */
  readonly consumer?: string | undefined
  /**
   * Receives errors that no caller sees: errors of handlers, lost leases, an unreachable cluster. Default: the
   * client's `logger`; without one, one line on the console for each distinct failure.
   */
  readonly onError?: ((error: unknown, about: ErrorAbout) => void) | undefined
}

/** Options of a worker whose handler gets several messages at once. */
export interface BatchOptions extends Omit<WorkOptions, 'results'> {
  /** The maximum number of messages per handler call. Default 100. */
  readonly batch?: number | undefined
}

/** What an error that no caller sees is about. */
export interface ErrorAbout {
  readonly kind: 'handler' | 'lease' | 'ack' | 'fetch'
  readonly message?: Message | undefined
}

export interface WorkSettings
  extends Pick<WorkOptions, 'from' | 'ordered' | 'results' | 'consumer'> {
  readonly concurrency: number
  readonly batch: number
  readonly prefetch: number | undefined
  readonly leaseSeconds: number
  readonly onError: (error: unknown, about: ErrorAbout) => void
}

const leaseDefault = '60s'
const concurrencyMax = 10_000
const batchMax = 1_000
const leaseSecondsMax = 86_400

export function readWorkOptions(
  options: WorkOptions,
  batch: number,
  report: WorkSettings['onError'],
): WorkSettings {
  return {
    ...options,
    concurrency: integer('concurrency', options.concurrency ?? 10, 1, concurrencyMax),
    batch: integer('batch', batch, 1, batchMax),
    prefetch:
      options.prefetch === undefined
        ? undefined
        : integer('prefetch', options.prefetch, 0, batchMax),
    leaseSeconds: readLease(options.lease ?? leaseDefault),
    onError: options.onError ?? report,
  }
}

/** Leases are sent in seconds, rounded up. */
export function readLease(lease: Duration): number {
  return integer('lease', Math.ceil(parseDuration(lease, 'lease') / 1_000), 1, leaseSecondsMax)
}

function integer(field: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RouseError('invalid_request', `${field} must be an integer from ${min} to ${max}`)
}
