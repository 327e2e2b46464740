import type { NodeEvent } from '../observe/events/node-event.ts'

export interface NoticedChange {
  readonly queue: string
  readonly change: 'created' | 'state'
  readonly text: string
  readonly by?: null
  readonly state?: string
  readonly was?: string
}

/** Changes of one reading are reported up to this number. */
const changesMax = 200
/** A queue that the list shows for the first time was reported by the request that created it. */
const reportedForMs = 10_000

/** Notices new queues, which pushes create, and queues whose state has changed, from one list to the next. */
export class QueueWatch {
  #states: ReadonlyMap<string, string> | undefined
  /** When the creation of a queue was reported. */
  readonly #created = new Map<string, number>()

  reported({ queue, json, atMs }: NodeEvent): void {
    if (queue !== null && json.includes('"change":"created"')) this.#created.set(queue, atMs)
  }

  changes(states: ReadonlyMap<string, string>, nowMs: number): NoticedChange[] {
    const before = this.#states
    this.#states = states
    for (const [queue, atMs] of this.#created) {
      if (nowMs - atMs > reportedForMs) this.#created.delete(queue)
    }
    if (before === undefined) return []
    const changes: NoticedChange[] = []
    for (const [queue, state] of states) {
      const was = before.get(queue)
      if (was === state || changes.length >= changesMax) continue
      const name = `Queue ${JSON.stringify(queue)}`
      if (was !== undefined) {
        const text = `${name}: ${stateTexts[state] ?? state}.`
        changes.push({ queue, change: 'state', text, state, was })
      } else if (!this.#created.has(queue)) {
        changes.push({ queue, change: 'created', text: `${name} was created by a push.`, by: null })
      }
    }
    return changes
  }

  clear(): void {
    this.#states = undefined
    this.#created.clear()
  }
}

const stateTexts: Readonly<Record<string, string>> = {
  ok: 'messages are delivered',
  paused: 'paused',
  held: 'a failed message holds a partition',
  no_consumers: 'messages are waiting, but no consumer is',
}
