/// <reference lib="esnext.disposable" preserve="true" />
import { createTransport } from '#transport'
import { readAnswer } from './consume/consumer-calls.ts'
import { errorOfAnswer } from './consume/failure.ts'
import { Session } from './consume/session.ts'
import { type Duration, parseDuration } from './duration.ts'
import { Caller, type Token } from './http/caller.ts'
import type { Transport } from './http/transport.ts'
import type { Instrument } from './instrument.ts'
import type { Logger } from './logging.ts'
import { PushBuffer, type Pushed } from './push/push-buffer.ts'
import { Queue } from './queue.ts'
import { createIdSource, systemRandom } from './randomness.ts'
import { DeadLetters } from './resources/dead-letters.ts'
import { Groups } from './resources/groups.ts'
import { Messages } from './resources/messages.ts'
import { listQueues, type QueueFilter, type QueueInfo } from './resources/queues.ts'
import { Schedules } from './resources/schedules.ts'
import { RouseError, type RouseErrorOptions } from './rouse-error.ts'
import type { StandardSchema } from './schema.ts'

/** Settings of a client. */
// biome-ignore lint/suspicious/noExplicitAny: without declared queues, payloads are untyped
export interface RouseOptions<Queues extends object = any> {
  /** The nodes. Calls are distributed over them and fail over to another node. */
  readonly urls: string | readonly string[]
  /**
   * An API key, sent with every request. A function is called before every try, so that it can return a new key
   * after a rotation; if it fails, so does the call.
   */
  readonly token?: Token | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A node that does not answer within this time counts as failed. Default 10 s. */
  readonly timeout?: Duration | undefined
  /** How long a failed call is retried. Default 30 s. */
  readonly retryFor?: Duration | undefined
  /**
   * The maximum number of messages waiting to be pushed; further pushes reject with `buffer_full`. Default
   * 10,000.
   */
  readonly bufferMax?: number | undefined
  /** The name of this program, which leases, attempts and dead letters show. A worker may have its own. */
  readonly consumer?: string | undefined
  /** Observes operations. `otel()` of `@rouse/client/otel` returns this option and the next one. */
  readonly instrument?: Instrument | undefined
  /** Returns the current W3C trace context; called at every push. */
  readonly traceparent?: (() => string | undefined) | undefined
  /**
   * Receives failures that no caller sees, such as those of handlers: `console`, or a logger with the same
   * methods. Without it, each distinct failure is one line on the console.
   */
  readonly logger?: Logger | undefined
  /**
   * A schema for payloads of a queue, of any library that follows Standard Schema. A push with another payload
   * rejects with `invalid_payload`; a delivered message with one becomes a dead letter.
   */
  readonly schemas?:
    | { readonly [Name in keyof Queues]?: StandardSchema<Queues[Name]> | undefined }
    | undefined
  /** Replaces the platform's HTTP client. */
  readonly transport?: Transport | undefined
}

/** A client of a Rouse cluster. `Queues` maps each queue to its payload type. */
// biome-ignore lint/suspicious/noExplicitAny: without declared queues, payloads are untyped
export class Rouse<Queues extends object = Record<string, any>> {
  readonly schedules: Schedules<Queues>
  readonly messages: Messages<Queues>
  readonly deadLetters: DeadLetters<Queues>
  readonly groups: Groups<Queues>
  readonly #transport: Transport
  readonly #session: Session

  constructor(options: RouseOptions<Queues>) {
    this.#transport = options.transport ?? createTransport()
    const caller = new Caller({
      ...options,
      urls: typeof options.urls === 'string' ? [options.urls] : options.urls,
      headers: options.headers ?? {},
      transport: this.#transport,
      random: systemRandom,
      timeoutMs: parseDuration(options.timeout ?? '10s', 'timeout'),
      retryForMs: parseDuration(options.retryFor ?? '30s', 'retryFor'),
    })
    this.#session = new Session({
      ...options,
      caller,
      pushes: new PushBuffer({
        send: (items) => sendPush(caller, items),
        messagesMax: options.bufferMax ?? 10_000,
      }),
      newId: createIdSource(),
      schemas: options.schemas ?? {},
    })
    this.schedules = new Schedules(caller)
    this.messages = new Messages(caller)
    this.deadLetters = new DeadLetters(caller)
    this.groups = new Groups(caller)
  }

  /** A queue, to push to and to consume from. This sends no request. */
  queue<Name extends keyof Queues & string>(name: Name): Queue<Queues[Name], Queues> {
    return new Queue(this.#session, name)
  }

  /** The queues of the cluster, with their figures. */
  queues(filter: QueueFilter = {}): AsyncGenerator<QueueInfo, undefined> {
    return listQueues(this.#session.caller, filter)
  }

  /** Resolves when every pending push is answered, successfully or not. */
  async flush(): Promise<void> {
    await this.#session.pushes.flush()
  }

  /** Stops the workers, sends pending pushes and closes the connections. Idempotent. */
  async close(): Promise<void> {
    await this.#session.close()
    this.#transport.close()
  }

  /** As `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

interface PushedItem {
  readonly status: Pushed['status']
  readonly message_id: string
  readonly transaction_id: string
  readonly partition_id: string
}

async function sendPush(caller: Caller, items: readonly string[]): Promise<Pushed[]> {
  const list = `"items":[${items.join(',')}]`
  const answer = await caller.call({
    method: 'POST',
    path: '/push',
    body: `{${list}}`,
    repeatBody: (sinceFirstMs) => `{"repeatAfterMs":${sinceFirstMs},${list}}`,
  })
  if (answer.status === 409) throw unknownOf(errorOfAnswer(answer))
  return readAnswer<PushedItem[]>(answer).map((item) => ({
    id: item.message_id,
    status: item.status,
    transactionId: item.transaction_id,
    partitionId: item.partition_id,
  }))
}

/**
 * `repeat_too_late`: the dedupe key of the first try may have expired, so the server refuses the repeated
 * push. Whether the first try was stored remains unknown.
 */
function unknownOf(error: RouseError): RouseError {
  if (error.code !== 'repeat_too_late') return error
  return new RouseError('outcome_unknown', error.message, {
    ...(error as RouseErrorOptions),
    cause: error,
  })
}
