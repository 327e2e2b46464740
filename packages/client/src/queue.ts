import { Consumer } from './consumer.ts'
import { readAnswer } from './consumer-calls.ts'
import { type Pushed, requestItemsMax } from './push-buffer.ts'
import { type PushEntry, type PushOptions, pushItemText } from './push-item.ts'
import type { Session } from './session.ts'

/** A queue, and its default group as a consumer. */
export class Queue<Data, Queues> extends Consumer<Data, Queues> {
  readonly #session: Session

  constructor(session: Session, name: string) {
    super(session, name, undefined)
    this.#session = session
  }

  /** Groups each get every message. */
  group(name: string): Consumer<Data, Queues> {
    return new Consumer(this.#session, this.name, name)
  }

  /** Resolves when the message is stored. Pushes made meanwhile share a request; those of a queue stay in order. */
  async push(payload: Data, options: PushOptions = {}): Promise<Pushed> {
    this.#session.checkOpen()
    const [pushed] = await this.#session.pushes.push(this.name, [this.#item(payload, options)])
    return pushed as Pushed
  }

  /** Up to 1,000 are stored together or not at all; more go by the thousand, in order. */
  async pushMany(entries: readonly PushEntry<Data>[]): Promise<Pushed[]> {
    this.#session.checkOpen()
    const items = entries.map(({ payload, ...options }) => this.#item(payload, options))
    const parts: Promise<Pushed[]>[] = []
    for (let at = 0; at < items.length; at += requestItemsMax) {
      parts.push(this.#session.pushes.push(this.name, items.slice(at, at + requestItemsMax)))
    }
    return (await Promise.all(parts)).flat()
  }

  /** Sets options of the queue, creating it if need be. Answers all of them. */
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
