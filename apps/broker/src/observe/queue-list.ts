// The list of all queues with their figures. Reading the figures of 10,000 queues takes PostgreSQL most of a
// second, so a worker whose lists take long keeps all figures in memory: it reads them again in the background,
// but only while the list is in use. A worker whose lists are fast or short keeps nothing, and every list is exact.
import { setImmediate as nextTick } from 'node:timers/promises'
import type { QueueFigures } from '@rouse/storage'

export interface ListedQueue {
  readonly figures: QueueFigures
  /** The part of the response that does not change with the activity of the queue. */
  readonly json: string
  /** The whole response for a queue without activity, once it was needed. */
  idle?: string
}

/** By name. */
export interface QueueSnapshot {
  readonly queues: readonly ListedQueue[]
  readonly atMs: number
  /** These are the queues of one page, not all. */
  readonly isPage?: boolean
}

export interface QueueListOptions {
  readonly readAll: () => Promise<readonly QueueFigures[]>
  readonly toJson: (figures: QueueFigures) => string
  /** Monotonic. */
  readonly nowMs: () => number
  /** The workers of the node share the cost that the database may have. */
  readonly workers: number
}

/** A list that takes longer than this is kept. */
const slowMs = 50
/** A list of at most this many queues is never kept: if it takes long, the database is busy or far away. */
const shortMax = 100
/** The share of time in which the workers of a node together may read all figures. */
const busyShare = 0.2
const refreshMsMin = 1_000
const refreshMsMax = 30_000
/** Without readers for this time, the figures are dropped. Longer than the usual interval of a scraper. */
const idleMs = 90_000
/** Figures older than this are not shown: the database does not answer. */
const ageMsMax = 120_000
/** Queues that are written as JSON without a pause, so that the event loop stays responsive. */
const slice = 500

export class QueueList {
  readonly #options: QueueListOptions
  #snapshot: QueueSnapshot | undefined
  #isKeeping = false
  /** A reading that all its callers share. */
  #shared: Promise<QueueSnapshot> | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #readAtMs = Number.NEGATIVE_INFINITY

  constructor(options: QueueListOptions) {
    this.#options = options
  }

  /** The figures kept in memory. Undefined: ask the database. */
  kept(): QueueSnapshot | undefined {
    const nowMs = this.#options.nowMs()
    this.#readAtMs = nowMs
    const snapshot = this.#snapshot
    return snapshot === undefined || nowMs - snapshot.atMs > ageMsMax ? undefined : snapshot
  }

  /** A list was read from the database and took this long. */
  tookMs(ms: number): void {
    if (ms <= slowMs || this.#isKeeping) return
    this.#isKeeping = true
    void this.#keep()
  }

  /** All figures, from memory or from the database. If the read took long, they are kept for later calls. */
  async all(): Promise<QueueSnapshot> {
    const kept = this.kept()
    if (kept !== undefined) return kept
    this.#shared ??= this.#readOnce().finally(() => (this.#shared = undefined))
    return await this.#shared
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #readOnce(): Promise<QueueSnapshot> {
    const { nowMs, readAll } = this.#options
    const atMs = nowMs()
    const figures = await readAll()
    const tookMs = nowMs() - atMs
    const snapshot = { queues: await this.#listed(figures), atMs }
    if (isWorthKeeping(figures, tookMs) && !this.#isKeeping) {
      this.#isKeeping = true
      this.#snapshot = snapshot
      this.#keepLater(tookMs)
    }
    return snapshot
  }

  async #keep(): Promise<void> {
    const { readAll, nowMs } = this.#options
    const atMs = nowMs()
    let tookMs = refreshMsMax
    try {
      const figures = await readAll()
      tookMs = nowMs() - atMs
      const queues = await this.#listed(figures)
      this.#snapshot = isWorthKeeping(figures, tookMs) ? { queues, atMs } : undefined
    } catch {
      // The last figures are shown until they are too old. Requests report the failure.
    }
    const isRead = nowMs() - this.#readAtMs < idleMs
    if (!isRead || this.#stopped) this.#snapshot = undefined
    if (this.#snapshot === undefined) this.#isKeeping = false
    else this.#keepLater(tookMs)
  }

  #keepLater(tookMs: number): void {
    if (this.#stopped) return
    const pauseMs = (tookMs * this.#options.workers) / busyShare - tookMs
    const boundedMs = Math.min(refreshMsMax, Math.max(refreshMsMin, pauseMs))
    this.#timer = setTimeout(() => void this.#keep(), boundedMs).unref()
  }

  /** Most queues are idle, so most texts are those of the last time. */
  async #listed(figures: readonly QueueFigures[]): Promise<ListedQueue[]> {
    const { toJson } = this.#options
    const before = new Map(this.#snapshot?.queues.map((one) => [one.figures.queue, one]))
    const listed: ListedQueue[] = []
    for (const [i, one] of figures.entries()) {
      if (i % slice === slice - 1) await nextTick()
      const last = before.get(one.queue)
      const json = last !== undefined && isSame(last.figures, one) ? last.json : toJson(one)
      listed.push({ figures: one, json })
    }
    return listed
  }
}

function isWorthKeeping({ length }: readonly QueueFigures[], tookMs: number): boolean {
  return tookMs > slowMs && length > shortMax
}

function isSame(a: QueueFigures, b: QueueFigures): boolean {
  return (
    a.ready === b.ready &&
    a.leased === b.leased &&
    a.retrying === b.retrying &&
    a.scheduled === b.scheduled &&
    a.dead === b.dead &&
    a.paused === b.paused &&
    a.namespace === b.namespace &&
    a.task === b.task &&
    a.options === b.options &&
    a.heldError === b.heldError &&
    a.heldUntil?.getTime() === b.heldUntil?.getTime() &&
    a.createdAt.getTime() === b.createdAt.getTime()
  )
}

export interface ListFilter {
  readonly after?: string | undefined
  readonly offset: number | undefined
  readonly limit: number
  readonly search: string | undefined
  readonly namespace: string | undefined
  readonly task: string | undefined
  /** Only queues with these names or prefixes. */
  readonly visible?:
    | { readonly names: readonly string[]; readonly prefixes: readonly string[] }
    | undefined
}

/** The same page that `rouse.find_queues` finds. */
export function pageOf(queues: readonly ListedQueue[], filter: ListFilter): ListedQueue[] {
  const { after, offset = 0, limit, search, namespace, task } = filter
  const isVisible = visibility(filter)
  const found: ListedQueue[] = []
  let skipped = 0
  for (let i = after === undefined ? 0 : positionAfter(queues, after); i < queues.length; i += 1) {
    const one = queues[i] as ListedQueue
    const { figures } = one
    if (!isVisible(figures.queue)) continue
    if (search !== undefined && !figures.queue.includes(search)) continue
    if (namespace !== undefined && figures.namespace !== namespace) continue
    if (task !== undefined && figures.task !== task) continue
    if (skipped < offset) skipped += 1
    else found.push(one)
    if (found.length >= limit) break
  }
  return found
}

function visibility({ visible }: ListFilter): (queue: string) => boolean {
  if (visible === undefined) return () => true
  const names = new Set(visible.names)
  return (queue) => names.has(queue) || visible.prefixes.some((prefix) => queue.startsWith(prefix))
}

/** Names are in the order of their UTF-8 bytes, as in the database. */
function positionAfter(queues: readonly ListedQueue[], name: string): number {
  const bytes = Buffer.from(name)
  let [low, high] = [0, queues.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const isAfter =
      Buffer.compare(Buffer.from((queues[middle] as ListedQueue).figures.queue), bytes) > 0
    if (isAfter) high = middle
    else low = middle + 1
  }
  return low
}
