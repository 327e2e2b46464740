import type { Caller } from '../http/caller.ts'
import type { PushBuffer } from '../push/push-buffer.ts'
import type { PushOptions } from '../push/push-item.ts'
import { PushKeys } from '../push/push-keys.ts'
import { RouseError } from '../rouse-error.ts'

/** Anything that must end before the client is closed. */
export interface Stoppable {
  stop(): Promise<void>
}

export interface SessionOptions {
  readonly caller: Caller
  readonly pushes: PushBuffer
  readonly newId: () => string
  /** The trace in which the program is, if it says. */
  readonly traceparent: (() => string | undefined) | undefined
}

/** What all queues of one client share. */
export class Session {
  readonly caller: Caller
  readonly pushes: PushBuffer
  readonly newId: () => string
  readonly keys: PushKeys
  readonly #traceparent: SessionOptions['traceparent']
  readonly #running = new Set<Stoppable>()
  #closed = false

  constructor({ caller, pushes, newId, traceparent }: SessionOptions) {
    this.caller = caller
    this.pushes = pushes
    this.newId = newId
    this.keys = new PushKeys(newId)
    this.#traceparent = traceparent
  }

  checkOpen(): void {
    if (this.#closed) throw new RouseError('closed', 'the client was closed')
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

  /** Workers first: their handlers may still push. */
  async close(): Promise<void> {
    await Promise.all([...this.#running].map((worker) => worker.stop()))
    this.#closed = true
    await this.pushes.flush()
  }
}
