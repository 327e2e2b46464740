import type { Caller } from '../http/caller.ts'
import { ask, type CallOptions, pages, segment } from './list.ts'

/** A consumer group of a queue. `default` is the unnamed group. */
export interface GroupInfo {
  readonly consumerGroup: string
  readonly queue: string
  readonly ready: number
  readonly leased: number
  readonly retrying: number
  readonly dead: number
  readonly oldestAgeMs: number | null
  readonly lastSeenAt: string
}

/** Consumer groups of all queues. */
export class Groups<Queues> {
  readonly #caller: Caller

  constructor(caller: Caller) {
    this.#caller = caller
  }

  /** All groups of all queues. */
  list({ signal }: CallOptions = {}): AsyncGenerator<GroupInfo, undefined> {
    return pages(this.#caller, '/groups', 'groups', {}, signal)
  }

  /** One group of one queue. */
  get(group: string, queue: keyof Queues & string, options: CallOptions = {}): Promise<GroupInfo> {
    return ask(this.#caller, 'GET', pathOf(group, queue), options)
  }

  /** Moves the group to the messages since a time, or past all messages. */
  async seek(
    group: string,
    queue: keyof Queues & string,
    to: Date | 'end',
    { signal }: CallOptions = {},
  ): Promise<void> {
    const body = to === 'end' ? { toEnd: true } : { timestamp: to.toISOString() }
    await ask(this.#caller, 'POST', `${pathOf(group, queue)}/seek`, { body, signal })
  }

  /** Forgets what the group has completed. */
  async delete(
    group: string,
    queue: keyof Queues & string,
    options: CallOptions = {},
  ): Promise<void> {
    await ask(this.#caller, 'DELETE', pathOf(group, queue), options)
  }
}

function pathOf(group: string, queue: string): string {
  return `/groups/${segment(group)}/queues/${segment(queue)}`
}
