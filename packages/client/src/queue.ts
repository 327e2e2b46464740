import { enqueueMany, pushIn } from '#sql'
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
import { ask, type CallOptions, segment } from './resources/list.ts'
import { type QueueOptions, wireOptions } from './resources/queue-options.ts'
import type { QueueInfo, WhyReason } from './resources/queues.ts'
import { RouseError } from './rouse-error.ts'
import { checkedBy } from './schema.ts'
import type { SqlExecutor } from './sql/executor.ts'
import type { PushedIn } from './sql/push-in.ts'

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
  async push(payload: Data, options: PushCallOptions = {}): Promise<Pushed> {
    this.#session.checkOpen()
    const checked = this.#check(payload)
    if (checked instanceof Promise) await checked
    const [pushed] = await this.#pushing(1, () =>
      this.#session.pushes.push(this.name, [this.#item(payload, options)], options.signal),
    )
    return pushed as Pushed
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
    this.#session.checkOpen()
    if (!chunked) checkCount(entries.length)
    for (const { payload } of entries) await this.#check(payload)
    return await this.#pushing(entries.length, () => this.#pushAll(entries, chunked, signal))
  }

  async #pushAll(
    entries: readonly PushEntry<Data>[],
    chunked: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Pushed[]> {
    const { pushes, keys: memory } = this.#session
    const keys = memory.keysOf(this.name, entries)
    const items = entries.map(({ payload, ...options }, i) =>
      this.#item(payload, { ...options, dedupeKey: keys[i] }),
    )
    const stored: Pushed[] = []
    try {
      for (const chunk of chunked ? chunksOf(items) : [items]) {
        if (chunk.length > 0) stored.push(...(await pushes.push(this.name, chunk, signal)))
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
    return await this.#pushing(1, () =>
      pushIn(executor, this.name, payload, this.#session.traced(options)),
    )
  }

  /** Stores up to 10,000 messages in your own transaction, with one statement, in this order. */
  async pushManyIn(
    executor: SqlExecutor,
    entries: readonly PushEntry<Data>[],
  ): Promise<PushedIn[]> {
    for (const { payload } of entries) await this.#check(payload)
    return await this.#pushing(entries.length, () =>
      enqueueMany(
        executor,
        entries.map((entry) => ({ ...this.#session.traced(entry), ...entry, queue: this.name })),
      ),
    )
  }

  /** Sets options of the queue and creates it if necessary. Resolves to all options. */
  async configure(
    options: QueueOptions,
    call: CallOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const body = { queue: this.name, options: wireOptions(options) }
    const { caller } = this.#session
    const answer = await ask<{ options: Record<string, unknown> }>(caller, 'POST', '/configure', {
      body,
      ...call,
    })
    return answer.options
  }

  /** The queue's options and figures. Rejects with `not_found` if it does not exist. */
  async info(call: CallOptions = {}): Promise<QueueInfo> {
    return await this.#ask('GET', '', call)
  }

  /** Why no message is delivered, in words. */
  async why(call: CallOptions = {}): Promise<readonly WhyReason[]> {
    return (await this.#ask<{ reasons: WhyReason[] }>('GET', '/why', call)).reasons
  }

  /** Stops delivery until `resume`. */
  async pause(call: CallOptions = {}): Promise<void> {
    await this.#ask('POST', '/pause', call)
  }

  /** Ends a pause. */
  async resume(call: CallOptions = {}): Promise<void> {
    await this.#ask('POST', '/resume', call)
  }

  /** Deletes all messages of the queue. */
  async purge(call: CallOptions = {}): Promise<void> {
    await this.#ask('POST', '/purge', call)
  }

  /** Deletes the queue and its messages. */
  async delete(call: CallOptions = {}): Promise<void> {
    await this.#ask('DELETE', '', call)
  }

  #ask<Result>(method: 'GET' | 'POST' | 'DELETE', path: string, call: CallOptions) {
    const { caller } = this.#session
    return ask<Result>(caller, method, `/queues/${segment(this.name)}${path}`, call)
  }

  /** Shows a push to an observer. Items are made inside, so that they belong to its trace. */
  #pushing<Result>(count: number, run: () => Promise<Result>): Promise<Result> {
    return this.#session.instrument({ kind: 'push', queue: this.name, count }, run)
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
    `pushMany takes at most ${requestItemsMax} messages, not ${count}; pass { chunked: true } for more`,
  )
}
