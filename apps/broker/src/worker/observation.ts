// Everything with which a worker is observed: its counters, its reports to the primary, and what it keeps of
// the queues for those who look at them.
import type { SidecarDbPool } from '@rouse/sidecar'
import { figuresOfAll } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Outbox, WorkerMessage } from '../ipc.ts'
import { watchEventLoop } from '../observe/event-loop-watch.ts'
import { QueueList } from '../observe/queue-list.ts'
import type { WorkerObserver } from '../observe/worker-observer.ts'
import { stableJson } from '../routes/resources/queues.ts'
import type { BrokerContext } from './context.ts'
import { type Answer, PrimaryQuestions } from './primary-questions.ts'
import { createStatsReports } from './stats-reports.ts'

export interface Observation {
  start(): void
  stop(): void
  /** The primary answered a question. */
  answered(answer: Answer): void
  /** What routes use. */
  readonly context: Pick<BrokerContext, 'queueList' | 'stats' | 'metrics' | 'series'>
}

export function createObservation(options: {
  readonly observer: WorkerObserver
  readonly outbox: Outbox<WorkerMessage>
  readonly sidecar: Pick<SidecarDbPool, 'stats'>
  readonly pool: pg.Pool
  readonly counts: { readonly requests: number }
  readonly clock: Clock
  /** The number of workers of the node. */
  readonly workers: number
}): Observation {
  const { observer, outbox, pool, clock, workers } = options
  const { nowMs } = clock
  const reports = createStatsReports(options)
  const questions = new PrimaryQuestions((question) => {
    reports.send()
    outbox.post(question)
  })
  const readAll = () => figuresOfAll(pool)
  const queueList = new QueueList({ readAll, toJson: stableJson, nowMs, workers })
  const loop = watchEventLoop((ms) => observer.histograms.record('eventLoop', 'worker', ms))
  return {
    start() {
      reports.start()
      loop.start()
    },
    stop() {
      reports.stop()
      loop.stop()
      queueList.stop()
    },
    answered: (answer) => questions.answered(answer),
    context: {
      queueList,
      stats: () => questions.stats(),
      metrics: () => questions.metrics(),
      series: (request) => questions.series(request),
    },
  }
}
