// Messages that retention may have removed before they were consumed. At the end of a run every message is
// old enough, so age alone would excuse everything. Therefore a message counts as lost if the group skipped
// it before its retention time was over: a message that was pushed later to the same partition was delivered
// before that time.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { pushedFrom, pushedTo } from './subscriptions.ts'

interface Came {
  /**
   * `end` is the time of the response; `pushed` is the earliest time at which the message can have been
   * stored.
   */
  readonly end: number
  readonly pushed: number
}

export class Eviction {
  readonly #history: History
  #lanes: ReadonlyMap<string, readonly Came[]> | undefined

  constructor(history: History) {
    this.#history = history
  }

  excuses(message: Message, group: string): boolean {
    const queue = this.#history.queues.get(message.queue)
    if (queue?.retentionMs === undefined) return false
    const oldFrom = pushedFrom(message) + queue.retentionMs
    const stored = pushedTo(message)
    if (queue.ordering !== 'partition') return true
    this.#lanes ??= this.#deliveriesByLane()
    return message.pushes.every(({ partition }) => {
      const lane = this.#lanes?.get(keyOf(message.queue, group, partition)) ?? []
      return !lane.some(({ end, pushed }) => pushed > stored && end < oldFrom)
    })
  }

  #deliveriesByLane(): Map<string, Came[]> {
    const lanes = new Map<string, Came[]>()
    for (const { queue, group, partition, deliveries } of this.#history.lanes()) {
      if (this.#history.queues.get(queue)?.retentionMs === undefined) continue
      const came = deliveries.map(({ end, message }) => ({
        end,
        pushed: pushedFrom(this.#history.message(message)),
      }))
      lanes.set(keyOf(queue, group, partition), came)
    }
    return lanes
  }
}

function keyOf(...names: readonly string[]): string {
  return JSON.stringify(names)
}
