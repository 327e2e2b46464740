import type { Caller } from '../http/caller.ts'
import { ask, type CallOptions, pages, segment } from './list.ts'

/** What a schedule pushes, and when. */
export interface ScheduleSettings<Name extends string = string, Payload = unknown> {
  readonly queue: Name
  /** Five fields, six with seconds in front, or a nickname such as `@daily`. */
  readonly cron: string
  /** An IANA name such as `Europe/Berlin`. Default `UTC`. */
  readonly timeZone?: string | undefined
  readonly payload?: Payload | undefined
  readonly partition?: string | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  /** Which ticks are pushed later if no node ran at their time. Default `last`. */
  readonly catchUp?: 'none' | 'last' | 'all' | undefined
  readonly paused?: boolean | undefined
}

/** Typed by the queue map. */
export type ScheduleOf<Queues> = {
  [Name in keyof Queues & string]: ScheduleSettings<Name, Queues[Name]>
}[keyof Queues & string]

/** Times are ISO 8601. */
export interface Schedule {
  readonly name: string
  readonly queue: string
  readonly partition: string | null
  readonly cron: string
  readonly timeZone: string
  readonly payload: unknown
  readonly headers: Readonly<Record<string, unknown>> | null
  readonly catchUp: 'none' | 'last' | 'all'
  readonly paused: boolean
  readonly nextAt: string | null
  readonly lastAt: string | null
  readonly createdAt: string
}

/** Schedules push a message at every tick of a cron pattern. */
export class Schedules<Queues> {
  readonly #caller: Caller

  constructor(caller: Caller) {
    this.#caller = caller
  }

  /** Creates the schedule, or replaces it. */
  upsert(name: string, settings: ScheduleOf<Queues>, options: CallOptions = {}): Promise<Schedule> {
    return ask(this.#caller, 'PUT', pathOf(name), { body: settings, ...options })
  }

  /** Rejects with `not_found` if there is none. */
  get(name: string, options: CallOptions = {}): Promise<Schedule> {
    return ask(this.#caller, 'GET', pathOf(name), options)
  }

  /** Messages that it has pushed stay. */
  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await ask(this.#caller, 'DELETE', pathOf(name), options)
  }

  /** All schedules. */
  list({ signal }: CallOptions = {}): AsyncGenerator<Schedule, undefined> {
    return pages(this.#caller, '/schedules', 'schedules', {}, signal)
  }
}

function pathOf(name: string): string {
  return `/schedules/${segment(name)}`
}
