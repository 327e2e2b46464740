import type { Caller } from '../http/caller.ts'
import { ask, type CallOptions, pages, segment } from './list.ts'

/** Which dead letters; an absent field matches all. `from` and `to` are times of the failure. */
export interface DeadLetterFilter<Queues> {
  readonly queue: keyof Queues & string
  readonly consumerGroup?: string | undefined
  readonly partition?: string | undefined
  readonly errorCode?: string | undefined
  readonly errorMessage?: string | undefined
  readonly from?: Date | undefined
  readonly to?: Date | undefined
}

/** A failed attempt. Times are ISO 8601. */
export interface FailedAttempt {
  readonly attempt: number
  readonly outcome: 'failed' | 'expired' | 'retry' | 'dlq'
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly holder: string | null
  readonly deliveredAt: string | null
  readonly endedAt: string
}

/** A message that is not delivered again in one consumer group. Times are ISO 8601. */
export interface DeadLetter {
  /** The id of the message. */
  readonly id: string
  readonly letterId: string
  readonly queue: string
  readonly partition: string | null
  readonly consumerGroup: string
  readonly data: unknown
  readonly headers: Readonly<Record<string, unknown>> | null
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly attempts: number
  readonly createdAt: string
  readonly failedAt: string
  /** Attempts that did not complete, oldest first. */
  readonly history: readonly FailedAttempt[]
}

/** Dead letters with the same error, counted. */
export interface DeadLetterErrors {
  readonly queue: string
  readonly consumerGroup: string
  readonly errorCode: string | null
  /** The error message of the newest dead letter. */
  readonly errorMessage: string | null
  readonly count: number
  readonly firstFailedAt: string
  readonly lastFailedAt: string
}

/** Which dead letters a redrive moves, and how fast. */
export interface RedriveOptions {
  /** Only these: ids of messages or of dead letters. */
  readonly ids?: readonly string[] | undefined
  /** Messages per second. Default: no limit. */
  readonly rate?: number | undefined
}

/** A redrive: dead letters that are delivered again, in the background. */
export interface Redrive {
  readonly id: string
  readonly queue: string
  readonly state: 'running' | 'done' | 'cancelled'
  readonly moved: number
  readonly total: number
  readonly rate: number | null
  readonly startedAt: string
  readonly updatedAt: string
}

/** Messages that failed too often, or that a handler discarded. */
export class DeadLetters<Queues> {
  readonly #caller: Caller

  constructor(caller: Caller) {
    this.#caller = caller
  }

  /** Newest first. */
  list(
    filter: Partial<DeadLetterFilter<Queues>> = {},
    { signal }: CallOptions = {},
  ): AsyncGenerator<DeadLetter, undefined> {
    return pages(this.#caller, base, 'deadLetters', { ...filter }, signal)
  }

  /** The dead letters of a message, one per consumer group. */
  async get(id: string, options: CallOptions = {}): Promise<readonly DeadLetter[]> {
    const answer = await ask<{ deadLetters: DeadLetter[] }>(
      this.#caller,
      'GET',
      `${base}/${segment(id)}`,
      options,
    )
    return answer.deadLetters
  }

  /** Counts by error. */
  async errors(
    { queue, consumerGroup }: Partial<DeadLetterFilter<Queues>> = {},
    { signal }: CallOptions = {},
  ): Promise<readonly DeadLetterErrors[]> {
    const answer = await ask<{ errors: DeadLetterErrors[] }>(
      this.#caller,
      'GET',
      `${base}/errors`,
      { query: { queue, consumerGroup }, signal },
    )
    return answer.errors
  }

  /** Delivers dead letters again, in the background. */
  redrive(
    filter: DeadLetterFilter<Queues> & RedriveOptions,
    { signal }: CallOptions = {},
  ): Promise<Redrive> {
    return this.#redrive(filter, { signal })
  }

  /** How many dead letters a redrive with this filter would move. */
  async countRedrive(
    filter: DeadLetterFilter<Queues> & RedriveOptions,
    { signal }: CallOptions = {},
  ): Promise<number> {
    return (await this.#redrive(filter, { signal, dryRun: true })).total
  }

  #redrive(
    { queue, rate, ...where }: DeadLetterFilter<Queues> & RedriveOptions,
    { signal, dryRun }: CallOptions & { readonly dryRun?: boolean },
  ): Promise<Redrive> {
    const body = { queue, rate, where, dryRun }
    return ask(this.#caller, 'POST', `${base}/redrives`, { body, signal })
  }

  /** How far a redrive is. */
  redriveStatus(id: string, options: CallOptions = {}): Promise<Redrive> {
    return ask(this.#caller, 'GET', `${base}/redrives/${segment(id)}`, options)
  }

  /** Stops a redrive. What it has moved stays moved. */
  cancelRedrive(id: string, options: CallOptions = {}): Promise<Redrive> {
    return ask(this.#caller, 'DELETE', `${base}/redrives/${segment(id)}`, options)
  }

  /** Deletes dead letters permanently. Resolves to their number. */
  async purge(filter: DeadLetterFilter<Queues>, { signal }: CallOptions = {}): Promise<number> {
    const { deleted } = await ask<{ deleted: number }>(this.#caller, 'DELETE', base, {
      query: { ...filter },
      signal,
    })
    return deleted
  }
}

const base = '/dead-letters'
