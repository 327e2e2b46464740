import type { Caller } from '../http/caller.ts'
import { ask, type CallOptions, pages, segment } from './list.ts'
import { type QueueOptions, wireOptions } from './queue-options.ts'

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

/** Calls that manage one queue. */
export class QueueAdmin {
  readonly #caller: Caller
  readonly #name: string

  constructor(caller: Caller, name: string) {
    this.#caller = caller
    this.#name = name
  }

  async configure(
    options: QueueOptions,
    call: CallOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const body = { queue: this.#name, options: wireOptions(options) }
    const answer = await ask<{ options: Record<string, unknown> }>(
      this.#caller,
      'POST',
      '/configure',
      { body, ...call },
    )
    return answer.options
  }

  async info(call: CallOptions): Promise<QueueInfo> {
    return await ask(this.#caller, 'GET', this.#path(''), call)
  }

  async why(call: CallOptions): Promise<readonly WhyReason[]> {
    const answer = await ask<{ reasons: WhyReason[] }>(
      this.#caller,
      'GET',
      this.#path('/why'),
      call,
    )
    return answer.reasons
  }

  async post(verb: 'pause' | 'resume' | 'purge', call: CallOptions): Promise<void> {
    await ask(this.#caller, 'POST', this.#path(`/${verb}`), call)
  }

  async delete(call: CallOptions): Promise<void> {
    await ask(this.#caller, 'DELETE', this.#path(''), call)
  }

  #path(rest: string): string {
    return `/queues/${segment(this.#name)}${rest}`
  }
}

export function listQueues(
  caller: Caller,
  { signal, ...filter }: QueueFilter,
): AsyncGenerator<QueueInfo, undefined> {
  return pages(caller, '/queues', 'queues', filter, signal)
}
