// The events of one node, in its primary. Changes of queues and of the cluster are rare, and the last of them are kept,
// so that a stream can be resumed. Wake-ups are frequent: they are reported only while a worker has a stream that
// wants them, and only a sample.
import type { PrimaryMessage, WorkerMessage } from '../../ipc.ts'
import {
  eventId,
  type NodeEvent,
  overlapMs,
  type PastEvents,
  type QueueChange,
} from './node-event.ts'
import { WakeReports } from './wake-reports.ts'

type Fields = Readonly<Record<string, unknown>>

export interface NodeEventsOptions {
  readonly node: string
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Monotonic. */
  readonly nowMs: () => number
  readonly post: (workerId: number, message: PrimaryMessage) => void
}

export type EventMessage = Extract<
  WorkerMessage,
  { type: 'queueChanged' | 'watchEvents' | 'askEvents' }
>

/** A part of `/stats`. */
export interface EventStats {
  /** Workers that serve streams, and those that serve streams with wake-ups. */
  readonly watching: number
  readonly watching_wakes: number
  readonly kept: number
}

const eventsMax = 1_000

export class NodeEvents {
  readonly #options: NodeEventsOptions
  readonly #startedAtMs: number
  #kept: NodeEvent[] = []
  /** The time of the last event that is not kept any more. */
  #droppedAtMs = Number.NEGATIVE_INFINITY
  #lastNumber = 0
  readonly #watching = new Set<number>()
  readonly #watchingWakes = new Set<number>()
  /** Undefined while no stream wants wake-ups: then nothing is measured for them. */
  wakes: WakeReports | undefined

  constructor(options: NodeEventsOptions) {
    this.#options = options
    this.#startedAtMs = options.wallMs()
  }

  received(workerId: number, message: EventMessage): void {
    switch (message.type) {
      case 'queueChanged':
        return this.queueChanged(message.queue, message.change, message.by)
      case 'watchEvents':
        return this.#watch(workerId, message)
      case 'askEvents': {
        const past = this.#since(message.sinceMs)
        return this.#options.post(workerId, { type: 'pastEvents', id: message.id, past })
      }
    }
  }

  workerGone(workerId: number): void {
    this.#watch(workerId, { events: false, wakes: false })
  }

  stats(): EventStats {
    return {
      watching: this.#watching.size,
      watching_wakes: this.#watchingWakes.size,
      kept: this.#kept.length,
    }
  }

  queueChanged(queue: string, change: QueueChange, by: string): void {
    const text = `Queue ${JSON.stringify(queue)} was ${change} by ${by}.`
    this.#keep('queue', queue, { queue, change, text, by })
  }

  /** When a queue was paused and resumed, the last change before `fromMs` included. */
  pausesOf(queue: string, fromMs: number): { atMs: number; paused: boolean }[] {
    const changes = this.#kept.flatMap(({ queue: name, json, atMs }) => {
      if (name !== queue) return []
      if (json.includes('"change":"paused"')) return [{ atMs, paused: true }]
      return json.includes('"change":"resumed"') ? [{ atMs, paused: false }] : []
    })
    const before = changes.filter(({ atMs }) => atMs < fromMs).slice(-1)
    return [...before, ...changes.filter(({ atMs }) => atMs >= fromMs)]
  }

  clusterChanged(change: string, text: string, fields: Fields = {}): void {
    this.#keep('cluster', null, { change, text, ...fields })
  }

  #watch(workerId: number, { events, wakes }: { events: boolean; wakes: boolean }): void {
    if (events) this.#watching.add(workerId)
    else this.#watching.delete(workerId)
    if (wakes) this.#watchingWakes.add(workerId)
    else this.#watchingWakes.delete(workerId)
    if (this.#watchingWakes.size === 0) this.wakes = undefined
    else this.wakes ??= this.#reportWakes()
  }

  #reportWakes(): WakeReports {
    const { node, wallMs, nowMs, post } = this.#options
    return new WakeReports({
      wallMs,
      nowMs,
      emit: (atMs, queue, fields) => {
        const json = jsonOf(atMs, node, fields)
        const events: NodeEvent[] = [{ atMs, name: 'wake', queue, json }]
        for (const workerId of this.#watchingWakes) post(workerId, { type: 'events', events })
      },
    })
  }

  #keep(name: 'queue' | 'cluster', queue: string | null, fields: Fields): void {
    const { node, wallMs } = this.#options
    const atMs = wallMs()
    this.#lastNumber += 1
    const id = eventId(atMs, this.#lastNumber, node)
    const event = { id, atMs, name, queue, json: jsonOf(atMs, node, fields) }
    this.#kept.push(event)
    if (this.#kept.length > 2 * eventsMax) {
      this.#droppedAtMs = this.#kept.at(-eventsMax - 1)?.atMs ?? atMs
      this.#kept = this.#kept.slice(-eventsMax)
    }
    for (const workerId of this.#watching) {
      this.#options.post(workerId, { type: 'events', events: [event] })
    }
  }

  #since(sinceMs: number): PastEvents {
    const fromMs = sinceMs - overlapMs
    const events = this.#kept.filter(({ atMs }) => atMs >= fromMs)
    if (sinceMs < this.#startedAtMs) return { events, missing: 'restarted' }
    return { events, missing: sinceMs <= this.#droppedAtMs ? 'too_old' : null }
  }
}

function jsonOf(atMs: number, node: string, fields: Fields): string {
  return JSON.stringify({ at: new Date(atMs).toISOString(), node, ...fields })
}
