// A consumer group of a queue: workers, iteration, and manual pop and ack.

import { type Duration, parseDuration } from '../duration.ts'
import { type PushTo, pushItemText } from '../push/push-item.ts'
import type { CallOptions } from '../resources/list.ts'
import { isRouseError, RouseError } from '../rouse-error.ts'
import { checkedBy, type StandardSchema } from '../schema.ts'
import { leaseLost, outcomeUnknown } from './ack-sender.ts'
import { type AckOutcome, ConsumerCalls } from './consumer-calls.ts'
import type { BatchHandler, Context, Handler } from './context.ts'
import { Discard } from './ending-errors.ts'
import { ackOf, deadLetteredFor, delayOf, type Ending, failedBy, resultOf } from './held.ts'
import type { Job } from './job.ts'
import type { Message } from './message.ts'
import { type MessageStream, streamMessages } from './message-stream.ts'
import type { Session } from './session.ts'
import {
  type BatchOptions,
  readLease,
  readWorkOptions,
  type WorkOptions,
  type WorkSettings,
} from './work-options.ts'
import { Worker } from './worker.ts'

/** Options of one pop by hand. */
export interface PopOptions {
  /** The maximum number of messages. Default 1. */
  readonly batch?: number | undefined
  /** The maximum number of partitions to draw from. Default 1. */
  readonly partitions?: number | undefined
  /** How long to wait for the first message. Default: no wait. */
  readonly wait?: Duration | undefined
  /** Default: the queue's lease time. */
  readonly lease?: Duration | undefined
  /** Acknowledges the messages on delivery. If the consumer then fails, the messages are lost. */
  readonly autoAck?: boolean | undefined
  readonly partition?: string | undefined
  readonly from?: 'all' | 'new' | Date | undefined
  /** Gives each message a lease of its own; at most 100 messages, and one of an ordered partition. */
  readonly leasePerMessage?: boolean | undefined
  /** The name that leases, attempts and dead letters show. Default: that of the client. */
  readonly consumer?: string | undefined
  readonly signal?: AbortSignal | undefined
}

const batchDefault = 100

/** A consumer group of a queue: workers, iteration, and pops and acks by hand. */
export class Consumer<Data, Queues> {
  readonly name: string
  readonly #session: Session
  readonly #group: string | undefined

  /** Use `Rouse.queue()` or `Queue.group()` instead. */
  constructor(session: Session, name: string, group: string | undefined) {
    this.#session = session
    this.name = name
    this.#group = group
  }

  /** Calls the handler for every message: returning acknowledges, throwing retries. Runs until `stop()`. */
  work(options: WorkOptions, handler: Handler<Data, Queues>): Worker
  work(handler: Handler<Data, Queues>): Worker
  work(first: WorkOptions | Handler<Data, Queues>, second?: Handler<Data, Queues>): Worker {
    const [options, handler] = typeof first === 'function' ? [{}, first] : [first, second]
    if (handler === undefined) throw new RouseError('invalid_request', 'work() requires a handler')
    return this.#start(options, 1, (job) =>
      handler(job.messages[0]?.message as Message<Data>, job as Context<Queues>),
    )
  }

  /**
   * Like `work`, with many messages per call. If the handler throws, it is called again for each message that
   * has not ended, one at a time, and only messages that fail alone are charged an attempt. Therefore the
   * handler may see a message twice in one attempt.
   */
  workBatch(options: BatchOptions, handler: BatchHandler<Data, Queues>): Worker {
    return this.#start({ ...options, results: false }, options.batch ?? batchDefault, (job) =>
      handler(
        job.messages.map(({ message }) => message),
        job,
      ),
    )
  }

  /**
   * For `for await`: requesting the next message acknowledges the previous one. Leaving the loop early
   * (throw, break, return) fails the attempt with the code `loop_left`, unless the message was ended before,
   * for example by `await message.ack()`.
   */
  messages(
    options: Omit<WorkOptions, 'concurrency' | 'results'> = {},
  ): MessageStream<Data, Queues> {
    return streamMessages((handle, onStopping) =>
      this.#start({ ...options, concurrency: 1, results: false }, 1, handle, onStopping),
    )
  }

  /** Takes messages by hand: end each of them with `ack`, `fail`, `retry` or `deadLetter` before its lease expires. */
  async pop(options: PopOptions = {}): Promise<Message<Data>[]> {
    const { batch = 1, partitions = 1, wait = 0, lease } = options
    const { messages } = await this.#calls(options.partition).fetch({
      batch,
      partitions,
      waitMs: parseDuration(wait, 'wait'),
      leaseSeconds: lease === undefined ? undefined : readLease(lease),
      autoAck: options.autoAck,
      leasePerMessage: options.leasePerMessage,
      consumer: options.consumer ?? this.#session.consumer,
      from: options.from ?? this.#fromDefault,
      signal: options.signal,
    })
    return [...messages]
  }

  /**
   * Acknowledges the messages and, in the same transaction, pushes the messages in `push`. `result` is kept with
   * each of them. Rejects with `lease_lost` if the lease is lost.
   */
  async ack(
    messages: Message<Data> | readonly Message<Data>[],
    options: {
      readonly push?: readonly PushTo<Queues>[] | undefined
      readonly result?: unknown
    } & CallOptions = {},
  ): Promise<void> {
    const { push = [], result, signal } = options
    const items = push.map(({ queue, payload, ...rest }) =>
      pushItemText(queue, payload, this.#session.traced(rest)),
    )
    const ending: Ending = { status: 'completed', result: resultOf(result) }
    await this.#end([messages].flat() as Message<Data>[], ending, { signal }, items)
  }

  /** Returns the message to the queue without charging the attempt. */
  async retry(
    message: Message<Data>,
    { delay, signal }: { readonly delay?: Duration | undefined } & CallOptions = {},
  ): Promise<void> {
    await this.#end([message], { status: 'retry', ...delayOf(delay) }, { signal })
  }

  /**
   * Fails the attempt: the queue's retry options decide when, or whether, the message is redelivered. `delay`
   * replaces their delay.
   */
  async fail(
    message: Message<Data>,
    error: unknown,
    { delay, signal }: { readonly delay?: Duration | undefined } & CallOptions = {},
  ): Promise<void> {
    await this.#end([message], { ...failedBy(error), ...delayOf(delay) }, { signal })
  }

  /** Makes the message a dead letter at once. */
  async deadLetter(
    message: Message<Data>,
    reason = 'rejected by the consumer',
    options: CallOptions = {},
  ): Promise<void> {
    await this.#end([message], deadLetteredFor(reason), options)
  }

  /** Reports how far the handling is: JSON of at most 4 KiB, shown by `rouse.messages.get`. */
  async progress(message: Message<Data>, value: unknown, options: CallOptions = {}): Promise<void> {
    await this.#calls().progress(message, value, options)
  }

  /**
   * Extends the lease for all messages of the same pop. The lease time counts from now. It never becomes
   * shorter, unless `exact` is set, which needs a lease of one message.
   */
  async extend(
    message: Message<Data>,
    lease: Duration,
    { exact, ...options }: { readonly exact?: boolean | undefined } & CallOptions = {},
  ): Promise<void> {
    const time = { seconds: readLease(lease), exact }
    if (!(await this.#calls().extend(message.leaseId ?? '-', time, options))) throw leaseLost()
  }

  /** Returns all messages of the same pop that have not ended, as if they had not been delivered. */
  async release(message: Message<Data>, options: CallOptions = {}): Promise<void> {
    await this.#calls().release(message.leaseId ?? '-', options)
  }

  async #end(
    messages: readonly Message<Data>[],
    ending: Ending,
    limits: CallOptions,
    items: readonly string[] = [],
  ): Promise<void> {
    const calls = this.#calls()
    const { queue, group, instrument } = calls
    const sent = messages.map((message) => ackOf(message, ending))
    const acks = messages.map((message) => ({ held: { message }, ending }))
    const outcomes = await instrument({ kind: 'ack', queue, group, acks }, async () =>
      items.length === 0
        ? await calls.ack(sent, limits)
        : [await calls.transact(sent, items, limits)],
    )
    for (const outcome of outcomes) expectAccepted(outcome)
  }

  #start(
    options: WorkOptions,
    batch: number,
    handle: (job: Job) => unknown,
    onStopping?: () => void,
  ): Worker {
    this.#session.checkOpen()
    const from = options.from ?? this.#fromDefault
    const consumer = options.consumer ?? this.#session.consumer
    const report = this.#session.reporterOf(this.name)
    const settings = readWorkOptions({ ...options, from, consumer }, batch, report)
    const schema = this.#session.schemas[this.name]
    const worker = new Worker({
      calls: this.#calls(options.partition),
      settings,
      handle:
        schema === undefined
          ? handle
          : async (job) => {
              await checkData(job, schema, settings.onError)
              return await handle(job)
            },
      onStopping,
      onStopped: () => this.#session.remove(worker),
    })
    this.#session.add(worker)
    worker.start()
    return worker
  }

  /** A misspelt name must not get every message that is kept. */
  get #fromDefault(): 'new' | undefined {
    return this.#group === undefined ? undefined : 'new'
  }

  #calls(partition?: string): ConsumerCalls<Data> {
    return new ConsumerCalls(this.#session, {
      queue: this.name,
      group: this.#group,
      partition,
    })
  }
}

/** A message that does not match its schema never will: it becomes a dead letter. */
async function checkData(
  job: Job,
  schema: StandardSchema,
  onError: WorkSettings['onError'],
): Promise<void> {
  for (const held of job.messages) {
    const { message } = held
    try {
      held.message = { ...message, data: await checkedBy(schema, message.data) }
    } catch (error) {
      if (!isRouseError(error, 'invalid_payload')) throw error
      if (job.messages.length === 1) onError(error, { kind: 'handler', message })
      throw new Discard(error.message, { cause: error, code: error.code })
    }
  }
}

function expectAccepted(outcome: AckOutcome): void {
  if (outcome === 'lost') throw leaseLost()
  if (outcome === 'unknown') throw outcomeUnknown()
}
