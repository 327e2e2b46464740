import { Consumer } from './consume/consumer.ts'
import { readAnswer } from './consume/consumer-calls.ts'
import type { Session } from './consume/session.ts'
import { PartialPushError } from './push/partial-push-error.ts'
import { chunksOf, type Pushed, requestItemsMax } from './push/push-buffer.ts'
import { type PushEntry, type PushOptions, pushItemText } from './push/push-item.ts'
import { RouseError } from './rouse-error.ts'

export interface PushManyOptions {
  /**
   * Sends several requests if needed. If a request fails, messages of earlier requests stay stored. Default
   * false.
   */
  readonly chunked?: boolean | undefined
}

/** A queue. As a consumer (`work`, `pop`, …) it uses the queue's default consumer group. */
export class Queue<Data, Queues> extends Consumer<Data, Queues> {
  readonly #session: Session

  constructor(session: Session, name: string) {
    super(session, name, undefined)
    this.#session = session
  }

  /** The consumer group of this name. Every group gets every message. */
  group(name: string): Consumer<Data, Queues> {
    return new Consumer(this.#session, this.name, name)
  }

  /**
   * Resolves when the message is stored. Concurrent pushes to a queue share requests and stay in order.
   */
  async push(payload: Data, options: PushOptions = {}): Promise<Pushed> {
    this.#session.checkOpen()
    return await this.#session.pushes.push(this.name, this.#item(payload, options))
  }

  /**
   * Stores up to 1,000 messages, all or none. A longer array is refused before anything is sent. With
   * `chunked`, an array of any length is sent in consecutive requests, and a failure rejects with a
   * `PartialPushError`. A failed call may be repeated with the same array: nothing is stored twice within the
   * queue's `dedupWindowSeconds`.
   */
  async pushMany(
    entries: readonly PushEntry<Data>[],
    { chunked = false }: PushManyOptions = {},
  ): Promise<Pushed[]> {
    const { pushes, keys: memory } = this.#session
    this.#session.checkOpen()
    if (!chunked) checkCount(entries.length)
    const keys = memory.keysOf(this.name, entries)
    const items = entries.map(({ payload, ...options }, i) =>
      this.#item(payload, { ...options, dedupeKey: keys[i] }),
    )
    const stored: Pushed[] = []
    try {
      for (const chunk of chunked ? chunksOf(items) : [items]) {
        if (chunk.length > 0) stored.push(...(await pushes.pushTogether(this.name, chunk)))
      }
    } catch (error) {
      memory.failed(this.name, entries, keys)
      if (!chunked || !(error instanceof RouseError)) throw error
      const rest = entries.slice(stored.length).map((entry, i) => ({
        ...entry,
        dedupeKey: keys[stored.length + i],
      }))
      throw new PartialPushError(error, { stored: stored.map(({ id }) => id), rest })
    }
    memory.stored(entries)
    return stored
  }

  /** Sets options of the queue and creates it if necessary. Resolves to all options. */
  async configure(
    options: Readonly<Record<string, unknown>>,
  ): Promise<Readonly<Record<string, unknown>>> {
    const body = JSON.stringify({ queue: this.name, options })
    const answer = await this.#session.caller.call({ method: 'POST', path: '/configure', body })
    return readAnswer<{ options: Record<string, unknown> }>(answer).options
  }

  #item(payload: unknown, options: PushOptions): string {
    const session = this.#session
    return pushItemText(this.name, payload, session.traced(options), session.newId)
  }
}

function checkCount(count: number): void {
  if (count <= requestItemsMax) return
  throw new RouseError(
    'invalid_request',
    `pushMany takes at most ${requestItemsMax} messages and got ${count}; nothing was sent. ` +
      'Pass { chunked: true } to send them in several requests.',
  )
}
