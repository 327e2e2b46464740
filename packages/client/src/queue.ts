import { Consumer } from './consume/consumer.ts'
import type { Session } from './consume/session.ts'
import { PartialPushError } from './push/partial-push-error.ts'
import { chunksOf, type Pushed, requestItemsMax } from './push/push-buffer.ts'
import {
  type PushCallOptions,
  type PushEntry,
  type PushOptions,
  pushItemText,
} from './push/push-item.ts'
import type { CallOptions } from './resources/list.ts'
import type { QueueOptions } from './resources/queue-options.ts'
import { QueueAdmin, type QueueInfo, type WhyReason } from './resources/queues.ts'
import { RouseError } from './rouse-error.ts'
import { checkedBy } from './schema.ts'
import type { SqlExecutor } from './sql/executor.ts'
import { enqueueMany, type PushedIn, pushIn } from './sql/push-in.ts'

/** Options of a push of several messages. */
export interface PushManyOptions {
  /**
   * Sends several requests if needed. If a request fails, messages of earlier requests stay stored. Default
   * false.
   */
  readonly chunked?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** A queue. As a consumer (`work`, `pop`, …) it uses the queue's default consumer group. */
export class Queue<Data, Queues> extends Consumer<Data, Queues> {
  readonly #session: Session
  readonly #admin: QueueAdmin

  constructor(session: Session, name: string) {
    super(session, name, undefined)
    this.#session = session
    this.#admin = new QueueAdmin(session.caller, name)
  }

  /** The consumer group of this name. Every group gets every message. */
  group(name: string): Consumer<Data, Queues> {
    return new Consumer(this.#session, this.name, name)
  }

  /**
   * Resolves when the message is stored. Concurrent pushes to a queue share requests and stay in order.
   */
  async push(payload: Data, options: PushCallOptions = {}): Promise<Pushed> {
    this.#session.checkOpen()
    const checked = this.#check(payload)
    if (checked instanceof Promise) await checked
    const item = this.#item(payload, options)
    return await this.#session.pushes.push(this.name, item, options.signal)
  }

  /**
   * Stores up to 1,000 messages, all or none. A longer array is refused before anything is sent. With
   * `chunked`, an array of any length is sent in consecutive requests, and a failure rejects with a
   * `PartialPushError`. A failed call may be repeated with the same array: nothing is stored twice within the
   * queue's `dedupWindowSeconds`.
   */
  async pushMany(
    entries: readonly PushEntry<Data>[],
    { chunked = false, signal }: PushManyOptions = {},
  ): Promise<Pushed[]> {
    const { pushes, keys: memory } = this.#session
    this.#session.checkOpen()
    if (!chunked) checkCount(entries.length)
    for (const { payload } of entries) await this.#check(payload)
    const keys = memory.keysOf(this.name, entries)
    const items = entries.map(({ payload, ...options }, i) =>
      this.#item(payload, { ...options, dedupeKey: keys[i] }),
    )
    const stored: Pushed[] = []
    try {
      for (const chunk of chunked ? chunksOf(items) : [items]) {
        if (chunk.length > 0) stored.push(...(await pushes.pushTogether(this.name, chunk, signal)))
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

  /**
   * Stores the message in your own PostgreSQL transaction, with `rouse.enqueue`: it is delivered after COMMIT,
   * and never after ROLLBACK. `@rouse/client/sql` has executors for Kysely, Drizzle, Knex, Prisma and others.
   */
  async pushIn(executor: SqlExecutor, payload: Data, options: PushOptions = {}): Promise<PushedIn> {
    await this.#check(payload)
    return await pushIn(executor, this.name, payload, this.#session.traced(options))
  }

  /** Stores up to 10,000 messages in your own transaction, with one statement, in this order. */
  async pushManyIn(
    executor: SqlExecutor,
    entries: readonly PushEntry<Data>[],
  ): Promise<PushedIn[]> {
    for (const { payload } of entries) await this.#check(payload)
    return await enqueueMany(
      executor,
      entries.map((entry) => ({ ...this.#session.traced(entry), ...entry, queue: this.name })),
    )
  }

  /** Sets options of the queue and creates it if necessary. Resolves to all options. */
  async configure(
    options: QueueOptions,
    call: CallOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return await this.#admin.configure(options, call)
  }

  /** The queue's options and figures. Rejects with `not_found` if it does not exist. */
  async info(call: CallOptions = {}): Promise<QueueInfo> {
    return await this.#admin.info(call)
  }

  /** Why no message is delivered, in words. */
  async why(call: CallOptions = {}): Promise<readonly WhyReason[]> {
    return await this.#admin.why(call)
  }

  /** Stops delivery until `resume`. */
  async pause(call: CallOptions = {}): Promise<void> {
    await this.#admin.post('pause', call)
  }

  /** Ends a pause. */
  async resume(call: CallOptions = {}): Promise<void> {
    await this.#admin.post('resume', call)
  }

  /** Deletes all messages of the queue. */
  async purge(call: CallOptions = {}): Promise<void> {
    await this.#admin.post('purge', call)
  }

  /** Deletes the queue and its messages. */
  async delete(call: CallOptions = {}): Promise<void> {
    await this.#admin.delete(call)
  }

  /** Resolves, or returns, if the payload matches the queue's schema. */
  #check(payload: unknown): unknown {
    const schema = this.#session.schemas[this.name]
    return schema === undefined ? undefined : checkedBy(schema, payload)
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
