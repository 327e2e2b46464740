// How a worker is observed: its counters, its reports to the primary, and the lists of queues that it keeps
// for readers.
import type { SidecarDbPool } from '@rouse/sidecar'
import { createFiguresReader } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Outbox, PrimaryMessage, WorkerMessage } from '../ipc.ts'
import { watchEventLoop } from '../observe/event-loop-watch.ts'
import { QueueList } from '../observe/queue-list.ts'
import type { MessageSpans } from '../observe/tracing/message-spans.ts'
import type { WorkerObserver } from '../observe/worker-observer.ts'
import { stableJson } from '../routes/resources/queues.ts'
import type { BrokerContext } from './context.ts'
import { EventHub } from './event-hub.ts'
import { type Answer, PrimaryQuestions } from './primary-questions.ts'
import { createStatsReports } from './stats-reports.ts'

type OwnMessage = Extract<PrimaryMessage, { type: 'events' | 'report' | 'ackedElsewhere' }>

export interface Observation {
  start(): void
  stop(): void
  /** The primary answered a question, asks for a report, or reports events. */
  received(message: Answer | OwnMessage): void
  /** What routes use. */
  readonly context: Pick<
    BrokerContext,
    'queueList' | 'stats' | 'metrics' | 'series' | 'events' | 'queueChanged' | 'traces' | 'tracesOf'
  >
}

export function createObservation(options: {
  readonly observer: WorkerObserver
  readonly spans: Pick<MessageSpans, 'counts' | 'stop'>
  readonly outbox: Outbox<WorkerMessage>
  readonly sidecar: Pick<SidecarDbPool, 'stats'>
  readonly pool: pg.Pool
  readonly counts: { readonly requests: number }
  readonly clock: Clock
  readonly config: Pick<Config, 'workers' | 'nodeId'>
  readonly nodeAuthorization: () => string
}): Observation {
  const { observer, outbox, pool, clock, config, nodeAuthorization } = options
  const { workers, nodeId: node } = config
  const { nowMs } = clock
  const reports = createStatsReports(options)
  const questions = new PrimaryQuestions((question) => {
    reports.send()
    outbox.post(question)
  })
  const readAll = createFiguresReader(pool)
  const queueList = new QueueList({ readAll, toJson: stableJson, nowMs, workers })
  const loop = watchEventLoop((ms) => observer.histograms.record('eventLoop', 'worker', ms))
  const stats = () => questions.stats()
  const events = new EventHub({
    node,
    outbox,
    context: { stats, queueList, clock },
    nodeAuthorization,
    past: (sinceMs) => questions.pastEvents(sinceMs),
  })
  return {
    start() {
      reports.start()
      loop.start()
    },
    stop() {
      reports.stop()
      loop.stop()
      queueList.stop()
      events.stop()
      void options.spans.stop()
    },
    received(message) {
      if (message.type === 'events') events.received(message.events)
      else if (message.type === 'ackedElsewhere') observer.traces.ackedElsewhere(message.acks)
      else if (message.type === 'report') {
        if (message.partitionId !== null) observer.traces.report(message.partitionId)
        reports.send(message.id)
      } else questions.answered(message)
    },
    context: {
      queueList,
      events,
      queueChanged: (queue, change, by) => outbox.post({ type: 'queueChanged', queue, change, by }),
      traces: observer.traces,
      tracesOf: (request) => questions.traces(request),
      stats,
      metrics: () => questions.metrics(),
      series: (request) => questions.series(request),
    },
  }
}
