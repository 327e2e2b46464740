// Options of a queue, with durations. A number under a name of the HTTP API has the unit that the API gives it
// (`leaseTime: 30` is 30 seconds); a text names its own unit (`leaseTime: '30s'`).
import { type Duration, parseDuration } from '../duration.ts'
import { RouseError } from '../rouse-error.ts'

type DurationText = Extract<Duration, string>

/** A number in seconds, or a text such as `'5m'`. */
export type Seconds = number | DurationText

/** A number in milliseconds, or a text such as `'5m'`. */
export type Milliseconds = number | DurationText

/** Made by `exponential`. */
export interface ExponentialBackoff {
  readonly type: 'exponential'
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  readonly jitter: boolean
}

/** At most `limit` deliveries in the time `per`. */
export type RateLimit = { readonly limit: number } & (
  | { readonly per: Duration }
  | { readonly perMs: number }
)

/** `null` resets an option to its default. */
export interface QueueOptions {
  /** How long a consumer has for its messages. The same as `leaseTime`, as a duration. */
  readonly lease?: Duration | null | undefined
  readonly retry?:
    | {
        /** How often a failed message is delivered again. */
        readonly limit?: number | null | undefined
        /** The delay before each retry: a ladder, whose last step repeats, or `exponential(…)`. */
        readonly backoff?: Duration | readonly Duration[] | ExponentialBackoff | null | undefined
      }
    | undefined
  readonly leaseTime?: Seconds | null | undefined
  readonly retryLimit?: number | null | undefined
  readonly retryBackoffMs?: number | readonly number[] | null | undefined
  readonly retryBackoff?: ExponentialBackoff | null | undefined
  readonly retryDelay?: Milliseconds | null | undefined
  /** Whether a message that failed too often is kept as a dead letter. */
  readonly deadLetterQueue?: boolean | null | undefined
  readonly dlqAfterMaxRetries?: boolean | null | undefined
  /** The queue to which messages that are given up are moved. */
  readonly deadLetterTo?: string | null | undefined
  /** `keyed`: messages without a partition are independent, those with one are ordered. */
  readonly ordering?: 'keyed' | 'partition' | 'none' | null | undefined
  /** Whether a failed message delays its partition. */
  readonly onFailure?: 'hold' | 'skip' | null | undefined
  /** How long every message waits before it is delivered. */
  readonly delayedProcessing?: Seconds | null | undefined
  /** A partition is delivered after this time without a push. */
  readonly windowBuffer?: Seconds | null | undefined
  /** After this time a message is no longer delivered; 0: never. */
  readonly ttl?: Seconds | null | undefined
  readonly retentionEnabled?: boolean | null | undefined
  readonly retentionSeconds?: Seconds | null | undefined
  readonly completedRetentionSeconds?: Seconds | null | undefined
  readonly maxWaitTimeSeconds?: Seconds | null | undefined
  /** The largest number of messages; 0: no limit. */
  readonly maxSize?: number | null | undefined
  /** The priority of the queue in a pop from several queues; higher first. */
  readonly priority?: number | null | undefined
  /** The largest number of leased messages per consumer group; 0: no limit. */
  readonly maxInFlight?: number | null | undefined
  /** The largest number of leased messages of a partition, per consumer group. */
  readonly maxInFlightPerPartition?: number | null | undefined
  /** Deliveries of a consumer group, redeliveries included. */
  readonly rate?: RateLimit | null | undefined
  /** The same, for each partition. */
  readonly partitionRate?: RateLimit | null | undefined
  readonly dedupWindowSeconds?: Seconds | null | undefined
  /**
   * Which attempts are recorded. With `all`, the times of completed messages are known, and workers keep what
   * their handlers return as results.
   */
  readonly history?: 'failures' | 'all' | null | undefined
  readonly encryptionEnabled?: boolean | null | undefined
}

/** Delays that grow with every retry: `base`, `base × factor`, … up to `max`. */
export function exponential(
  base: Duration,
  options: {
    readonly factor?: number | undefined
    readonly max?: Duration | undefined
    readonly jitter?: boolean | undefined
  } = {},
): ExponentialBackoff {
  return {
    type: 'exponential',
    baseMs: parseDuration(base, 'base'),
    factor: options.factor ?? 2,
    maxMs: parseDuration(options.max ?? '1h', 'max'),
    jitter: options.jitter ?? false,
  }
}

/** Options whose numbers are seconds. */
const inSeconds = /Seconds$|^(leaseTime|delayedProcessing|windowBuffer|ttl)$/

/** The options under the names and units of the HTTP API. The server checks them. */
export function wireOptions({ lease, retry, ...rest }: QueueOptions): Record<string, unknown> {
  const wire: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(rest)) {
    const { limit, per } = Object(value) as { readonly limit: number; readonly per?: Duration }
    if (per !== undefined) wire[name] = { limit, perMs: parseDuration(per, name) }
    else if (typeof value !== 'string' || !/^\d/.test(value)) wire[name] = value
    else wire[name] = parseDuration(value as Duration, name) / (inSeconds.test(name) ? 1_000 : 1)
  }
  if (lease !== undefined) {
    wire.leaseTime = lease === null ? null : Math.ceil(parseDuration(lease, 'lease') / 1_000)
  }
  if (retry !== undefined) Object.assign(wire, wireRetry(retry))
  return wire
}

function wireRetry(retry: NonNullable<QueueOptions['retry']>): Record<string, unknown> {
  const { limit: retryLimit, backoff, ...unknown } = retry
  const [other] = Object.keys(unknown)
  if (other !== undefined) throw new RouseError('unknown_option', `unknown option retry.${other}`)
  return { ...(retryLimit === undefined ? {} : { retryLimit }), ...wireBackoff(backoff) }
}

function wireBackoff(
  backoff: NonNullable<QueueOptions['retry']>['backoff'],
): Record<string, unknown> {
  if (backoff === undefined) return {}
  if (backoff === null) return { retryBackoffMs: null }
  if (typeof backoff === 'object' && 'type' in backoff) return { retryBackoff: backoff }
  const steps = [backoff as Duration].flat()
  return { retryBackoffMs: steps.map((step) => parseDuration(step, 'retry.backoff')) }
}
