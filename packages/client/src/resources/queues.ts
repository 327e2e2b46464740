import type { Caller } from '../http/caller.ts'
import { type CallOptions, pages } from './list.ts'

/** A queue with its figures. Times are ISO 8601. */
export interface QueueInfo {
  readonly queue: string
  readonly namespace: string | null
  readonly task: string | null
  /** Under the names and units of the HTTP API. A list leaves them out. */
  readonly options?: Readonly<Record<string, unknown>>
  readonly paused: boolean
  readonly createdAt: string
  readonly ready: number
  readonly leased: number
  readonly retrying: number
  readonly scheduled: number
  readonly dead: number
  readonly consumers: number
  readonly oldestAgeMs: number | null
  readonly state: 'ok' | 'paused' | 'held' | 'no_consumers' | (string & {})
}

/** Why no message of a queue is delivered. */
export interface WhyReason {
  readonly code: string
  readonly text: string
}

/** Which queues a list has. */
export interface QueueFilter extends CallOptions {
  /** A part of the name. */
  readonly search?: string | undefined
  readonly namespace?: string | undefined
  readonly task?: string | undefined
}

export function listQueues(
  caller: Caller,
  { signal, ...filter }: QueueFilter,
): AsyncGenerator<QueueInfo, undefined> {
  return pages(caller, '/queues', 'queues', filter, signal)
}
