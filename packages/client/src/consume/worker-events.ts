// What a worker reports while it runs. A listener must not throw; if it does, the error is reported like that of
// a handler and changes nothing.
import type { Held } from './held.ts'
import type { Message } from './message.ts'
import type { ErrorAbout, WorkSettings } from './work-options.ts'

/** What `Worker.on` reports, by name. */
export interface WorkerEvents {
  /** A handler begins. In a failed batch, again for each message that is handled alone. */
  active: { readonly message: Message }
  /** `result` is what is kept with the message, if anything is. */
  completed: {
    readonly message: Message
    readonly durationMs: number
    readonly result: unknown
  }
  /** The attempt failed and is charged. `delayMs` is set if the handler chose the delay. */
  failed: {
    readonly message: Message
    readonly error: unknown
    readonly durationMs: number
    readonly delayMs: number | undefined
  }
  /** The message went back to the queue, and the attempt is not charged. */
  released: { readonly message: Message; readonly delayMs: number | undefined }
  /** The handler made the message a dead letter. */
  discarded: { readonly message: Message; readonly reason: string; readonly durationMs: number }
  /** What `onError` receives. */
  error: { readonly error: unknown; readonly about: ErrorAbout }
  stopped: object
}

type Listener<Name extends keyof WorkerEvents> = (event: WorkerEvents[Name]) => void

export class Events {
  readonly #listeners = new Map<string, Set<(event: never) => void>>()
  readonly #onFault: (error: unknown) => void

  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault
  }

  get isHeard(): boolean {
    return this.#listeners.size > 0
  }

  on<Name extends keyof WorkerEvents>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(name)
    }
  }

  emit<Name extends keyof WorkerEvents>(name: Name, event: WorkerEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        listener(event as never)
      } catch (error) {
        this.#onFault(error)
      }
    }
  }

  begun({ messages }: Handled): void {
    if (this.isHeard) for (const { message } of messages) this.emit('active', { message })
  }

  /** Reports how the messages of a handler call ended. */
  ended({ messages, startedMs }: Handled, nowMs: number, error?: unknown): void {
    if (!this.isHeard) return
    const durationMs = nowMs - startedMs
    for (const { message, ending } of messages) {
      if (ending === undefined) continue
      const { status, result, delayMs, error: reason = '' } = ending
      this.emit(eventOf[status], { message, durationMs, result, error, delayMs, reason })
    }
  }
}

const eventOf = {
  completed: 'completed',
  failed: 'failed',
  retry: 'released',
  dlq: 'discarded',
} as const

/** A handler call, as far as events show it. */
interface Handled {
  readonly messages: readonly Held[]
  readonly startedMs: number
}

/** The settings, with errors also emitted as events. */
export function reportedTo(events: Events, settings: WorkSettings): WorkSettings {
  return {
    ...settings,
    onError(error, about) {
      settings.onError(error, about)
      events.emit('error', { error, about })
    },
  }
}
