// The stats of the workers in the primary: what they reported last, and the answers to what they ask for.
import type { PrimaryMessage, WorkerMessage, WorkerReport, WorkerStats } from '../ipc.ts'
import type { NodeActivity } from '../observe/node-activity.ts'
import type { NodeTraces } from '../observe/why/trace-record.ts'

export interface WorkerReportsOptions {
  readonly activity: Pick<NodeActivity, 'add' | 'workerGone' | 'metrics' | 'series' | 'traces'>
  readonly pausesOf: (queue: string, fromMs: number) => NodeTraces['pauses']
  readonly post: (workerId: number, message: PrimaryMessage) => void
  /** The body of `/stats`. */
  readonly stats: (
    workerStats: ReadonlyMap<number, WorkerStats>,
  ) => Readonly<Record<string, unknown>>
}

export type Question = Extract<WorkerMessage, { type: 'askStats' | 'askSeries' | 'askTraces' }>

export class WorkerReports {
  readonly #options: WorkerReportsOptions
  readonly #stats = new Map<number, WorkerStats>()

  constructor(options: WorkerReportsOptions) {
    this.#options = options
  }

  /** Counts are since the last report of the worker, so each report is added once. */
  add(workerId: number, { counted, ...stats }: WorkerReport): void {
    this.#stats.set(workerId, stats)
    this.#options.activity.add(counted)
  }

  workerGone(workerId: number): void {
    const last = this.#stats.get(workerId)
    if (last !== undefined) this.#options.activity.workerGone(last)
    this.#stats.delete(workerId)
  }

  isDatabaseUp(): boolean {
    for (const { databaseUp } of this.#stats.values()) if (!databaseUp) return false
    return true
  }

  answer(workerId: number, question: Question): void {
    this.#options.post(workerId, this.#answerTo(question))
  }

  #answerTo(question: Question): PrimaryMessage {
    const { activity } = this.#options
    const { id } = question
    if (question.type === 'askSeries') {
      return { type: 'series', id, series: activity.series.read(question.request) }
    }
    if (question.type === 'askTraces') {
      const { queue, fromMs } = question.request
      const pauses = this.#options.pausesOf(queue, fromMs)
      return {
        type: 'traces',
        id,
        traces: { records: activity.traces.find(question.request), pauses },
      }
    }
    const stats = this.#options.stats(this.#stats)
    if (question.of === 'node') return { type: 'stats', id, stats }
    return { type: 'metrics', id, metrics: activity.metrics(stats, [...this.#stats.values()]) }
  }
}
