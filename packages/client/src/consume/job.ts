// One handler call: its messages, its signal, and its decisions about them.

import type { Duration } from '../duration.ts'
import { type PushOptions, pushItemText } from '../push/push-item.ts'
import type { SqlExecutor } from '../sql/executor.ts'
import type { BatchContext } from './context.ts'
import { deadLetteredFor, delayOf, type Ending, type Held, resultOf } from './held.ts'
import { type Message, traceparentOf } from './message.ts'

/**
 * Receives a job's decisions. Each promise resolves when the server has accepted the decision and rejects if
 * the decision has no effect.
 */
export interface JobEndings {
  readonly end: (messages: readonly Held[], ending: Ending) => Promise<void>
  readonly transact: (
    messages: readonly Held[],
    items: readonly string[],
    result: unknown,
  ) => Promise<void>
  readonly progress: (message: Message, value: unknown) => Promise<void>
  /** The options of a push, with the trace that it belongs to. */
  readonly traced: (options: PushOptions) => PushOptions
  readonly ackIn: (messages: readonly Held[], executor: SqlExecutor) => Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: pushed payloads are typed where the handler is declared
export class Job implements BatchContext<any> {
  readonly messages: readonly Held[]
  readonly startedMs: number
  readonly #endings: JobEndings
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined

  constructor(messages: readonly Held[], endings: JobEndings, startedMs: number) {
    this.startedMs = startedMs
    this.messages = messages
    this.#endings = endings
  }

  /** Created on demand: most handlers do not use it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  get isAborted(): boolean {
    return this.#aborted !== undefined
  }

  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }

  /** Messages whose end is not decided. */
  get open(): Held[] {
    return this.messages.filter(({ settled }) => !settled)
  }

  async ack(options: Parameters<BatchContext<Record<string, unknown>>['ack']>[0] = {}) {
    const messages = this.#named(options.messages)
    const result = resultOf(options.result)
    if (options.push === undefined || options.push.length === 0) {
      return await this.#endings.end(messages, { status: 'completed', result })
    }
    const [cause] = messages
    const traceparent = cause && traceparentOf(cause.message)
    const items = options.push.map(({ queue, payload, ...rest }) =>
      pushItemText(queue, payload, inherit(this.#endings.traced(rest), traceparent)),
    )
    await this.#endings.transact(messages, items, result)
  }

  /** Only for jobs of one message. */
  async progress(value: unknown) {
    for (const { message } of this.messages) await this.#endings.progress(message, value)
  }

  async ackIn(
    executor: SqlExecutor,
    options: { readonly messages?: readonly Message[] | undefined } = {},
  ) {
    await this.#endings.ackIn(this.#named(options.messages), executor)
  }

  async retry({ messages, delay }: Parameters<BatchContext<unknown>['retry']>[0] = {}) {
    await this.#endings.end(this.#named(messages), { status: 'retry', ...delayOf(delay) })
  }

  async snooze(
    delay: Duration,
    options: { readonly messages?: readonly Message[] | undefined } = {},
  ) {
    await this.retry({ ...options, delay })
  }

  async deadLetter(
    reason = 'rejected by the handler',
    options: { readonly messages?: readonly Message[] | undefined } = {},
  ) {
    await this.#endings.end(this.#named(options.messages), deadLetteredFor(reason))
  }

  #named(messages: readonly Message[] | undefined): Held[] {
    if (messages === undefined) return this.open
    const named = new Set(messages)
    return this.open.filter(({ message }) => named.has(message))
  }
}

/** Messages pushed by a handler belong to the same trace. */
function inherit(options: PushOptions, traceparent: string | undefined): PushOptions {
  return options.traceparent === undefined && traceparent !== undefined
    ? { ...options, traceparent }
    : options
}
