// The stats of the workers in the primary: what they reported last, and the answers to what they ask for.
import type { PrimaryMessage, WorkerMessage, WorkerReport, WorkerStats } from '../ipc.ts'
import type { NodeActivity } from '../observe/node-activity.ts'
import type { AckRecord, NodeTraces, TraceRecord } from '../observe/why/trace-record.ts'

export interface WorkerReportsOptions {
  readonly activity: Pick<NodeActivity, 'add' | 'workerGone' | 'metrics' | 'series' | 'traces'>
  readonly pausesOf: (queue: string, fromMs: number) => NodeTraces['pauses']
  /** How far the database's clock is ahead of this node's; undefined while that is not known. */
  readonly databaseAheadMs: () => number | undefined
  readonly post: (workerId: number, message: PrimaryMessage) => void
  /** The body of `/stats`. */
  readonly stats: (
    workerStats: ReadonlyMap<number, WorkerStats>,
  ) => Readonly<Record<string, unknown>>
}

export type Question = Extract<WorkerMessage, { type: 'askStats' | 'askSeries' | 'askTraces' }>
type StatsMessage = Extract<WorkerMessage, { type: 'workerStats' }>

/** How long to wait for the reports of workers: less than the worker waits that asks. */
const reportMsMax = 500

interface Refresh {
  readonly waitsFor: Set<number>
  readonly done: () => void
}

export class WorkerReports {
  readonly #options: WorkerReportsOptions
  readonly #stats = new Map<number, WorkerStats>()
  readonly #refreshes = new Map<number, Refresh>()
  #lastRefresh = 0

  constructor(options: WorkerReportsOptions) {
    this.#options = options
  }

  /** Counts are since the last report of the worker, so each report is added once. */
  add(workerId: number, { stats: { counted, ...stats }, reply }: Omit<StatsMessage, 'type'>): void {
    this.#stats.set(workerId, stats)
    this.#options.activity.add(this.#withTimes(counted))
    this.#passOn(workerId, counted.traces)
    if (reply !== undefined) this.#reported(reply, workerId)
  }

  workerGone(workerId: number): void {
    const last = this.#stats.get(workerId)
    if (last !== undefined) this.#options.activity.workerGone(last)
    this.#stats.delete(workerId)
    for (const id of this.#refreshes.keys()) this.#reported(id, workerId)
  }

  isDatabaseUp(): boolean {
    for (const { databaseUp } of this.#stats.values()) if (!databaseUp) return false
    return true
  }

  answer(workerId: number, question: Question): void {
    if (question.type === 'askTraces') void this.#answerTraces(workerId, question)
    else this.#options.post(workerId, this.#answerTo(question))
  }

  #answerTo(question: Exclude<Question, { type: 'askTraces' }>): PrimaryMessage {
    const { activity } = this.#options
    const { id } = question
    if (question.type === 'askSeries') {
      return { type: 'series', id, series: activity.series.read(question.request) }
    }
    const stats = this.#options.stats(this.#stats)
    if (question.of === 'node') return { type: 'stats', id, stats }
    return { type: 'metrics', id, metrics: activity.metrics(stats, [...this.#stats.values()]) }
  }

  async #answerTraces(
    workerId: number,
    { id, request }: Extract<Question, { type: 'askTraces' }>,
  ): Promise<void> {
    await this.#refresh(request.partitionId)
    const { activity, pausesOf, post } = this.#options
    const records = activity.traces.find(request)
    const pauses = pausesOf(request.queue, request.fromMs)
    post(workerId, { type: 'traces', id, traces: { records, pauses } })
  }

  /** Resolves when all workers have reported what they recorded until now, or after a short time. */
  #refresh(partitionId: string | null): Promise<void> {
    this.#lastRefresh += 1
    const id = this.#lastRefresh
    const waitsFor = new Set(this.#stats.keys())
    return new Promise((resolve) => {
      const timeout = setTimeout(() => this.#refreshes.get(id)?.done(), reportMsMax)
      const done = (): void => {
        clearTimeout(timeout)
        this.#refreshes.delete(id)
        resolve()
      }
      this.#refreshes.set(id, { waitsFor, done })
      for (const worker of waitsFor) this.#options.post(worker, { type: 'report', id, partitionId })
      if (waitsFor.size === 0) done()
    })
  }

  #reported(id: number, workerId: number): void {
    const refresh = this.#refreshes.get(id)
    if (refresh?.waitsFor.delete(workerId) === true && refresh.waitsFor.size === 0) refresh.done()
  }

  /** The time of an ack by the database's clock, so that other nodes can compare it. */
  #withTimes(counted: WorkerReport['counted']): WorkerReport['counted'] {
    const aheadMs = this.#options.databaseAheadMs()
    if (aheadMs === undefined || !counted.traces.some(isForeignAck)) return counted
    const traces = counted.traces.map((record) =>
      isForeignAck(record) ? { ...record, atMs: record.wallMs + aheadMs } : record,
    )
    return { ...counted, traces }
  }

  /** The worker that delivered a lease learns of its ack, and whether it took long. */
  #passOn(fromWorkerId: number, traces: readonly TraceRecord[]): void {
    const acks = traces.filter(isForeignAck)
    if (acks.length === 0) return
    for (const workerId of this.#stats.keys()) {
      if (workerId !== fromWorkerId) this.#options.post(workerId, { type: 'ackedElsewhere', acks })
    }
  }
}

function isForeignAck(record: TraceRecord): record is AckRecord {
  return record.kind === 'ack' && record.atMs === null
}
