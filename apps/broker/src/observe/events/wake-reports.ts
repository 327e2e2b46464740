// Reports to event streams how waiting pops are woken, from the hint to the pop's result. Wake-ups are
// frequent, so only a sample is reported, and nothing while no stream wants them.
import { shownGroup, type WaitGroup, type WakeHint } from '@rouse/protocol'
import type { Grant } from '@rouse/sidecar'
import type { WorkerMessage } from '../../ipc.ts'

export type WakeStep =
  | 'push'
  | 'free'
  | 'timer'
  | 'notify'
  | 'hint_sent'
  | 'hint_received'
  | 'hint_lost'
  | 'grant'
  | 'found'
  | 'empty'

type Fields = Readonly<Record<string, unknown>>
type Release = Extract<WorkerMessage, { type: 'release' }>

export interface WakeReportsOptions {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Monotonic. */
  readonly nowMs: () => number
  readonly emit: (atMs: number, queue: string | null, fields: Fields) => void
}

/** Grants whose pop has not ended. Further ones are reported without their duration. */
const openMax = 10_000

/** Exists while a stream wants wake-ups. */
export class WakeReports {
  readonly #options: WakeReportsOptions
  readonly #sample = new WakeSample()
  /** When grants were given. */
  readonly #open = new Map<number, number>()

  constructor(options: WakeReportsOptions) {
    this.#options = options
  }

  report(step: WakeStep, queue: string | null, fields: Fields): void {
    const atMs = this.#options.wallMs()
    const skipped = this.#sample.take(step, atMs)
    if (skipped !== undefined) this.#options.emit(atMs, queue, { step, queue, ...fields, skipped })
  }

  announced(
    step: 'push' | 'free' | 'timer' | 'notify',
    woken: readonly WakeHint[],
    worker?: number,
  ): void {
    for (const { queue, count, except } of woken) {
      const of = worker === undefined ? {} : { worker }
      this.report(step, queue, { ...of, ...(step === 'free' ? {} : { count: count ?? null }) })
      if (except === undefined) continue
      const group = shownGroup(except)
      this.report('found', queue, { ...of, group, source: 'push', ms: null, count: count ?? null })
    }
  }

  granted(worker: number, { description, grantId, source, waitedMs = 0 }: Grant): void {
    if (this.#open.size < openMax) this.#open.set(grantId, this.#options.nowMs())
    const { group } = description
    this.report('grant', queueOf(description), {
      worker,
      group: shownGroup(group),
      source,
      ms: tenths(waitedMs),
    })
  }

  released(worker: number, { grant, outcome, found }: Release): void {
    const atMs = this.#open.get(grant.grantId)
    this.#open.delete(grant.grantId)
    if (outcome !== 'messages' && outcome !== 'empty') return
    const { description, source } = grant
    const ms = atMs === undefined ? null : tenths(this.#options.nowMs() - atMs)
    const of = { worker, group: shownGroup(description.group), source, ms }
    if (outcome === 'empty') this.report('empty', queueOf(description), of)
    else this.report('found', queueOf(description), { ...of, count: found })
  }
}

/** A map of the cluster cannot show more, and a busy node has thousands. */
const perSecondMax = 50

/** Chooses which wake-ups are reported: a limited number of each step in each second. */
class WakeSample {
  #second = 0
  readonly #counts = new Map<WakeStep, number>()
  readonly #skipped = new Map<WakeStep, number>()

  /** How many of this step were left out since the last one; undefined: leave out this one, too. */
  take(step: WakeStep, nowMs: number): number | undefined {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) this.#counts.clear()
    this.#second = second
    const count = this.#counts.get(step) ?? 0
    const skipped = this.#skipped.get(step) ?? 0
    if (count >= perSecondMax) {
      this.#skipped.set(step, skipped + 1)
      return undefined
    }
    this.#counts.set(step, count + 1)
    this.#skipped.set(step, 0)
    return skipped
  }
}

/** Null for pops of a namespace or task. */
function queueOf({ source }: WaitGroup): string | null {
  return 'queue' in source ? source.queue : null
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
