// The last responses with a list of queues. Several dashboards often ask for the same list before figures and
// activity are read again.
import type { QueueActivity } from '../cluster/queue-activity.ts'
import type { QueueSnapshot } from './queue-list.ts'

/** The most lists per snapshot. A list of 10,000 queues has eight megabytes. */
const bodiesMax = 4

interface Bodies {
  readonly activity: QueueActivity
  readonly byFilter: Map<string, Buffer>
}

export class ListBodies {
  /** A response is dropped with the figures that it shows. */
  readonly #bodies = new WeakMap<QueueSnapshot, Bodies>()

  of(
    snapshot: QueueSnapshot,
    activity: QueueActivity,
    filter: string,
    write: () => Buffer,
  ): Buffer {
    let kept = this.#bodies.get(snapshot)
    if (kept?.activity !== activity) {
      kept = { activity, byFilter: new Map() }
      this.#bodies.set(snapshot, kept)
    }
    const known = kept.byFilter.get(filter)
    if (known !== undefined) return known
    const body = write()
    if (kept.byFilter.size < bodiesMax) kept.byFilter.set(filter, body)
    return body
  }
}
