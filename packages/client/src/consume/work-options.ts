import { type Duration, parseDuration } from '../duration.ts'
import { RouseError } from '../rouse-error.ts'
import type { Message } from './message.ts'

export interface WorkOptions {
  /** Handlers at once. Default 10; with one partition of an ordered queue there is never more than one. */
  readonly concurrency?: number | undefined
  /** Messages that may wait for a handler. Default: what is handled in a tenth of a second. */
  readonly prefetch?: number | undefined
  /** How long a message is ours without renewal, in whole seconds. It renews itself. Default 60 s. */
  readonly lease?: Duration | undefined
  /** Only this partition. */
  readonly partition?: string | undefined
  /** Where a group begins that nobody has used before: with everything there is (default), with what comes, or at a time. */
  readonly from?: 'all' | 'new' | Date | undefined
  /** One message of a partition at a time. Default: as the queue is configured. */
  readonly ordered?: boolean | undefined
  /** Told of what nobody else is told of: errors of handlers, leases that were lost, a cluster out of reach. */
  readonly onError?: ((error: unknown, about: ErrorAbout) => void) | undefined
}

export interface BatchOptions extends WorkOptions {
  /** The most messages that one call of the handler is given. Default 100. */
  readonly batch?: number | undefined
}

export interface ErrorAbout {
  readonly kind: 'handler' | 'lease' | 'ack' | 'fetch'
  readonly message?: Message | undefined
}

export interface WorkSettings {
  readonly concurrency: number
  readonly batch: number
  readonly prefetch: number | undefined
  readonly leaseSeconds: number
  readonly from: WorkOptions['from']
  readonly ordered: boolean | undefined
  readonly onError: (error: unknown, about: ErrorAbout) => void
}

const leaseDefault = '60s'
const concurrencyMax = 10_000
const batchMax = 1_000
const leaseSecondsMax = 86_400

export function readWorkOptions(options: WorkOptions, batch: number): WorkSettings {
  return {
    concurrency: integer('concurrency', options.concurrency ?? 10, 1, concurrencyMax),
    batch: integer('batch', batch, 1, batchMax),
    prefetch:
      options.prefetch === undefined
        ? undefined
        : integer('prefetch', options.prefetch, 0, batchMax),
    leaseSeconds: readLease(options.lease ?? leaseDefault),
    from: options.from,
    ordered: options.ordered,
    onError: options.onError ?? (() => {}),
  }
}

/** Leases are told in seconds: a part of one counts as a whole. */
export function readLease(lease: Duration): number {
  return integer('lease', Math.ceil(parseDuration(lease, 'lease') / 1_000), 1, leaseSecondsMax)
}

function integer(field: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RouseError('invalid_request', `${field} must be an integer from ${min} to ${max}`)
}
