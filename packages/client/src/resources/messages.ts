import { type Duration, parseDuration } from '../duration.ts'
import type { Caller } from '../http/caller.ts'
import { ask, type CallOptions, pages, segment } from './list.ts'

/** Where a message is. */
export type MessageState =
  | 'scheduled'
  | 'ready'
  | 'leased'
  | 'retrying'
  | 'dead'
  | 'completed'
  | 'cancelled'

/** Which messages a list has. */
export interface MessageFilter<Queues> {
  readonly queue: keyof Queues & string
  readonly state?: MessageState | undefined
  readonly partition?: string | undefined
  readonly consumerGroup?: string | undefined
  /** Allowed only with the states `retrying` and `dead`. */
  readonly errorCode?: string | undefined
  readonly from?: Date | undefined
  readonly to?: Date | undefined
}

/** A message in a list. Times are ISO 8601. */
export interface StoredMessage {
  readonly id: string
  readonly queue: string
  readonly partition: string | null
  readonly data: unknown
  readonly headers: Readonly<Record<string, unknown>> | null
  readonly createdAt: string
  readonly dueAt: string | null
  readonly state?: MessageState
}

/** A message in one consumer group. */
export interface MessageGroup {
  readonly consumerGroup: string
  readonly state: MessageState
  readonly attempts: number
  readonly consumer: string | null
  readonly leaseExpiresAt: string | null
  readonly nextTryAt: string | null
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly result: unknown
  readonly progress: unknown
}

/** A message and its state in every consumer group. */
export interface MessageInfo extends StoredMessage {
  readonly state: MessageState
  readonly firstDeliveredAt: string | null
  /** Known if the ack had a result, or the queue keeps all of its history. */
  readonly completedAt: string | null
  readonly result: unknown
  readonly progress: unknown
  /** 0 to 9. */
  readonly priority: number
  /** Null: that of the queue. */
  readonly retryLimit: number | null
  readonly retryBackoffMs: readonly number[] | null
  readonly expiresAt: string | null
  readonly groups: readonly MessageGroup[]
}

/** How many messages a filter matched, and how many of them were cancelled. */
export interface Cancelled {
  readonly matched: number
  readonly cancelled: number
}

/** How long to wait for the end of a message, and in which group. */
export interface WaitOptions extends CallOptions {
  /** How long to wait. Default 30 s. */
  readonly timeout?: Duration | undefined
  /** The group in which the message must have ended. Default: all groups. */
  readonly consumerGroup?: string | undefined
}

/** Stored messages, found by the id that a push returned. */
export class Messages<Queues> {
  readonly #caller: Caller

  constructor(caller: Caller) {
    this.#caller = caller
  }

  /** Rejects with `not_found` if there is none. */
  get(id: string, options: CallOptions = {}): Promise<MessageInfo> {
    return ask(this.#caller, 'GET', pathOf(id), options)
  }

  /** Partition by partition, each in its order. */
  list(
    filter: MessageFilter<Queues>,
    { signal }: CallOptions = {},
  ): AsyncGenerator<StoredMessage, undefined> {
    return pages(this.#caller, base, 'messages', { ...filter }, signal)
  }

  /** Rejects with `message_leased` while a consumer holds it, and with `message_finished` if one has ended it. */
  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await ask(this.#caller, 'DELETE', pathOf(id), options)
  }

  /**
   * Cancels messages in this state, page by page; with `dryRun` it only counts them. Those that a consumer is given
   * meanwhile are `matched` and not `cancelled`.
   */
  async cancelMany(
    filter: MessageFilter<Queues> & { readonly state: 'ready' | 'retrying' | 'scheduled' },
    { dryRun, signal }: { readonly dryRun?: boolean | undefined } & CallOptions = {},
  ): Promise<Cancelled> {
    let [matched, cancelled] = [0, 0]
    let cursor: string | undefined
    do {
      const query = { ...filter, dryRun, cursor }
      const step = await ask<Cancelled & { cursor: string | null }>(this.#caller, 'DELETE', base, {
        query,
        signal,
      })
      matched += step.matched
      cancelled += step.cancelled
      cursor = step.cursor ?? undefined
    } while (cursor !== undefined)
    return { matched, cancelled }
  }

  /** Makes a scheduled message, or a retry, due now. */
  async runNow(id: string, options: CallOptions = {}): Promise<void> {
    await ask(this.#caller, 'POST', `${pathOf(id)}/run-now`, options)
  }

  /** Resolves when the message has ended, or after the timeout; its `state` tells which. */
  async wait(id: string, options: WaitOptions = {}): Promise<MessageInfo> {
    const { timeout = '30s', consumerGroup, signal } = options
    const waitMs = parseDuration(timeout, 'timeout')
    const query = { wait: true, timeout: waitMs, consumerGroup }
    const timeoutMs = waitMs + answerMs
    return await ask(this.#caller, 'GET', pathOf(id), { query, signal, timeoutMs })
  }
}

const base = '/messages'
/** A node responds at the deadline; this is for the network. */
const answerMs = 10_000

function pathOf(id: string): string {
  return `${base}/${segment(id)}`
}
