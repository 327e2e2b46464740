import type { Caller } from '../http/caller.ts'
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
  readonly logger: Logger | undefined
  readonly schemas: Readonly<Record<string, StandardSchema | undefined>>
  /** The current trace context, if the program provides one. */
  readonly traceparent: (() => string | undefined) | undefined
}

/** State shared by all queues of a client. */
export class Session {
  readonly caller: Caller
  readonly pushes: PushBuffer
  readonly newId: () => string
  readonly keys: PushKeys
  readonly schemas: SessionOptions['schemas']
  /** Where errors of a queue's workers go that no caller sees. */
  readonly reporterOf: (queue: string) => ReportError
  readonly #traceparent: SessionOptions['traceparent']
  readonly #running = new Set<Stoppable>()
  #closed = false

  constructor({ caller, pushes, newId, logger, schemas, traceparent }: SessionOptions) {
    this.caller = caller
    this.pushes = pushes
    this.newId = newId
    this.schemas = schemas
    this.keys = new PushKeys(newId)
    this.reporterOf = createReporter(logger)
    this.#traceparent = traceparent
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

  traced(options: PushOptions): PushOptions {
    if (options.traceparent !== undefined || this.#traceparent === undefined) return options
    return { ...options, traceparent: this.#traceparent() }
  }

  /** Stops workers first: their handlers may still push. */
  async close(): Promise<void> {
    await Promise.all([...this.#running].map((worker) => worker.stop()))
    this.#closed = true
    await this.pushes.flush()
  }
}
