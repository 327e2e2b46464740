import type { ServerResponse } from 'node:http'
import type { QueueFilter } from '../observe/events/queue-filter.ts'
import { eventText } from '../observe/events/sse.ts'

export interface StreamOptions {
  /** The key or the name of the principal. */
  readonly owner: string
  readonly filter: QueueFilter
  readonly scope: 'node' | 'cluster'
  readonly wakes: boolean
  readonly groups: boolean
  /** Ends the stream after the events that are known at once. */
  readonly once: boolean
}

/** A stream that is read more slowly is cut off: it would take the memory of the worker. */
const unreadBytesMax = 1_048_576
/** Events that wait while the past ones are read. */
const heldMax = 1_000
export const keepAliveMs = 15_000

/** One response of `GET /api/v1/events`. */
export class EventStream {
  readonly options: StreamOptions
  readonly #response: ServerResponse
  #wroteAtMs = 0
  /** While the past is being read, present events wait. */
  #held: (() => void)[] | undefined = []
  /** Ids of the events that were repeated: those of other nodes may come again. */
  readonly #repeated = new Set<string>()

  constructor(response: ServerResponse, options: StreamOptions) {
    this.#response = response
    this.options = options
  }

  /** Also true if the client is gone. */
  get isEnded(): boolean {
    return this.#response.writableEnded || this.#response.destroyed
  }

  /** Sends an event, after those of the past. */
  send(name: string, json: string, id?: string): void {
    if (this.#held === undefined) return this.#write(name, json, id)
    if (this.#held.length < heldMax) this.#held.push(() => this.#write(name, json, id))
  }

  /** Sends an event before all that wait. */
  sendFirst(name: string, json: string, id?: string): void {
    this.#write(name, json, id)
    if (id !== undefined) this.#repeated.add(id)
  }

  /** Everything that happened before the stream began is sent. */
  pastIsSent(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const write of held) write()
  }

  keepAlive(nowMs: number): void {
    if (this.#wroteAtMs === 0) this.#wroteAtMs = nowMs
    if (nowMs - this.#wroteAtMs < keepAliveMs) return
    this.#wroteAtMs = 0
    this.#writeText(': \n\n')
  }

  end(reason: 'draining' | 'unauthenticated' | 'complete'): void {
    if (this.isEnded) return
    this.pastIsSent()
    if (reason !== 'complete') this.#write('end', JSON.stringify({ reason }))
    this.#response.end()
  }

  #write(name: string, json: string, id?: string): void {
    if (id !== undefined && this.#repeated.has(id)) return
    this.#wroteAtMs = 0
    this.#writeText(eventText(name, json, id))
  }

  #writeText(text: string): void {
    if (this.isEnded) return
    this.#response.write(text)
    if (this.#response.writableLength > unreadBytesMax) this.#response.destroy()
  }
}
