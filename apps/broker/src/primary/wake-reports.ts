// How waiting pops are woken, for those who watch: from the hint to the pop's result.
import { shownGroup, type WaitGroup, type WakeHint } from '@rouse/protocol'
import type { Grant } from '@rouse/sidecar'
import type { WorkerMessage } from '../ipc.ts'
import type { NodeEvents } from '../observe/events/node-events.ts'

type Release = Extract<WorkerMessage, { type: 'release' }>

/** Grants whose pop has not ended. Further ones are reported without their duration. */
const openMax = 10_000

export class WakeReports {
  readonly #events: Pick<NodeEvents, 'wakes'>
  readonly #nowMs: () => number
  /** When grants were given. Empty while no stream wants them. */
  readonly #open = new Map<number, number>()

  constructor(events: Pick<NodeEvents, 'wakes'>, nowMs: () => number) {
    this.#events = events
    this.#nowMs = nowMs
  }

  announced(
    step: 'push' | 'free' | 'timer' | 'notify',
    woken: readonly WakeHint[],
    worker?: number,
  ): void {
    const { wakes } = this.#events
    if (wakes === undefined) return
    for (const { queue, count } of woken) {
      wakes(step, queue, {
        ...(worker === undefined ? {} : { worker }),
        ...(step === 'free' ? {} : { count: count ?? null }),
      })
    }
  }

  granted(worker: number, { description, grantId, source, waitedMs = 0 }: Grant): void {
    const { wakes } = this.#events
    if (wakes === undefined) {
      if (this.#open.size > 0) this.#open.clear()
      return
    }
    if (this.#open.size < openMax) this.#open.set(grantId, this.#nowMs())
    const { group } = description
    wakes('grant', queueOf(description), {
      worker,
      group: shownGroup(group),
      source,
      ms: tenths(waitedMs),
    })
  }

  released(worker: number, { grant, outcome, found }: Release): void {
    const { wakes } = this.#events
    if (wakes === undefined) return
    const atMs = this.#open.get(grant.grantId)
    this.#open.delete(grant.grantId)
    if (outcome !== 'messages' && outcome !== 'empty') return
    const { description, source } = grant
    const ms = atMs === undefined ? null : tenths(this.#nowMs() - atMs)
    const of = { worker, group: shownGroup(description.group), source, ms }
    if (outcome === 'empty') wakes('empty', queueOf(description), of)
    else wakes('found', queueOf(description), { ...of, count: found })
  }
}

/** Null for pops of a namespace or task. */
function queueOf({ source }: WaitGroup): string | null {
  return 'queue' in source ? source.queue : null
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
