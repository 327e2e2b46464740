import type { Caller } from '../http/caller.ts'
import { type Instrument, uninstrumented } from '../instrument.ts'
import { createReporter, type Logger, type ReportError } from '../logging.ts'
import type { PushBuffer } from '../push/push-buffer.ts'
import type { PushOptions } from '../push/push-item.ts'
import { PushKeys } from '../push/push-keys.ts'
import { RouseError } from '../rouse-error.ts'
import type { StandardSchema } from '../schema.ts'

/** Something that must stop before the client is closed. */
export interface Stoppable {
  stop(): Promise<void>
}

export interface SessionOptions {
  readonly caller: Caller
  readonly pushes: PushBuffer
  readonly newId: () => string
  readonly logger?: Logger | undefined
  readonly schemas: Readonly<Record<string, StandardSchema | undefined>>
  /** The name of consumers that have none of their own. */
  readonly consumer?: string | undefined
  readonly instrument?: Instrument | undefined
  /** The current trace context, if the program provides one. */
  readonly traceparent?: (() => string | undefined) | undefined
}

/** State shared by all queues of a client. */
export class Session {
  readonly caller: Caller
  readonly pushes: PushBuffer
  readonly newId: () => string
  readonly keys: PushKeys
  readonly schemas: SessionOptions['schemas']
  readonly consumer: string | undefined
  readonly instrument: Instrument
  /** The options of a push, with the current trace context unless they have one. */
  readonly traced: (options: PushOptions) => PushOptions
  /** Where errors of a queue's workers go that no caller sees. */
  readonly reporterOf: (queue: string) => ReportError
  readonly #running = new Set<Stoppable>()
  #closed = false

  constructor(options: SessionOptions) {
    const { traceparent } = options
    this.caller = options.caller
    this.pushes = options.pushes
    this.newId = options.newId
    this.schemas = options.schemas
    this.consumer = options.consumer
    this.instrument = options.instrument ?? uninstrumented
    this.keys = new PushKeys(options.newId)
    this.reporterOf = createReporter(options.logger)
    this.traced = (push) =>
      push.traceparent !== undefined || traceparent === undefined
        ? push
        : { ...push, traceparent: traceparent() }
  }

  checkOpen(): void {
    if (this.#closed) throw new RouseError('closed', 'the client is closed')
  }

  add(worker: Stoppable): void {
    this.#running.add(worker)
  }

  remove(worker: Stoppable): void {
    this.#running.delete(worker)
  }

  /** Stops workers first: their handlers may still push. */
  async close(): Promise<void> {
    await Promise.all([...this.#running].map((worker) => worker.stop()))
    this.#closed = true
    await this.pushes.flush()
  }
}
