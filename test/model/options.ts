// The options of a queue, and their defaults.
import type { Rate } from './rates.ts'

/** Without jitter, which would be random. */
export interface Backoff {
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
}

export interface Options {
  leaseTime: number
  retryLimit: number
  /** Null: `retryBackoff` counts. */
  retryBackoffMs: number[] | null
  retryBackoff: Backoff | null
  deadLetterQueue: boolean
  deadLetterTo: string | null
  ordering: 'keyed' | 'partition' | 'none'
  onFailure: 'hold' | 'skip'
  delayedProcessing: number
  windowBuffer: number
  ttl: number
  retentionEnabled: boolean
  retentionSeconds: number
  completedRetentionSeconds: number
  maxWaitTimeSeconds: number
  maxSize: number
  priority: number
  maxInFlight: number
  maxInFlightPerPartition: number
  rate: Rate | null
  partitionRate: Rate | null
  dedupWindowSeconds: number
  history: 'failures' | 'all'
}

export const defaults: Readonly<Options> = {
  leaseTime: 300,
  retryLimit: 3,
  retryBackoffMs: [0, 30_000, 300_000],
  retryBackoff: null,
  deadLetterQueue: true,
  deadLetterTo: null,
  ordering: 'keyed',
  onFailure: 'hold',
  delayedProcessing: 0,
  windowBuffer: 0,
  ttl: 0,
  retentionEnabled: true,
  retentionSeconds: 0,
  completedRetentionSeconds: 0,
  maxWaitTimeSeconds: 0,
  maxSize: 0,
  priority: 0,
  maxInFlight: 0,
  maxInFlightPerPartition: 0,
  rate: null,
  partitionRate: null,
  dedupWindowSeconds: 3_600,
  history: 'failures',
}
