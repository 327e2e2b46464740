// The worker's stats, which it sends to its primary once a second and before each question.
import type { SidecarDbPool } from '@rouse/sidecar'
import { queuesOfPartitions } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Outbox, WorkerMessage, WorkerReport, WorkerStats } from '../ipc.ts'
import type { MessageSpans } from '../observe/tracing/message-spans.ts'
import type { WorkerObserver } from '../observe/worker-observer.ts'

const reportMs = 1_000
/** A timer that fires a little early is not followed by another one at once. */
const pauseMsMin = 200

export interface StatsReports {
  start(): void
  stop(): void
  /** `reply`: the request of the primary that this answers. */
  send(reply?: number): void
}

export function createStatsReports(options: {
  readonly outbox: Outbox<WorkerMessage>
  readonly sidecar: Pick<SidecarDbPool, 'stats'>
  readonly pool: pg.Pool
  readonly counts: { readonly requests: number }
  readonly observer: WorkerObserver
  readonly spans: Pick<MessageSpans, 'counts'>
  readonly clock: Clock
}): StatsReports {
  const { outbox, sidecar, pool, counts, observer, spans, clock } = options
  const max = pool.options.max
  let timer: NodeJS.Timeout | undefined
  let rates: WorkerStats['queriesPerSecond'] = {}
  let counted: { readonly queries: WorkerStats['queries']; readonly atMs: number } | undefined

  function workerStats(): WorkerReport {
    const { totalCount, idleCount, waitingCount, options } = pool
    return {
      ...sidecar.stats(),
      pool: { total: totalCount, idle: idleCount, queued: waitingCount, limit: options.max, max },
      requests: counts.requests,
      spans: spans.counts,
      queriesPerSecond: rates,
      counted: observer.take(),
    }
  }

  function send(reply?: number): void {
    const stats = workerStats()
    outbox.post({ type: 'workerStats', stats, ...(reply === undefined ? {} : { reply }) })
  }

  function report(): void {
    const { queries } = sidecar.stats()
    const atMs = clock.nowMs()
    if (counted !== undefined) rates = ratesOf(counted.queries, queries, atMs - counted.atMs)
    counted = { queries, atMs }
    void observer.resolve((partitionIds) => queuesOfPartitions(pool, partitionIds))
    send()
  }

  /** All workers report at the same time, at the end of each second, so that a steady rate looks steady. */
  function reportRegularly(): void {
    report()
    const leftMs = reportMs - (clock.wallMs() % reportMs)
    timer = setTimeout(reportRegularly, leftMs < pauseMsMin ? leftMs + reportMs : leftMs)
  }

  return {
    start() {
      if (timer === undefined) reportRegularly()
    },
    stop: () => clearTimeout(timer),
    send,
  }
}

function ratesOf(
  before: WorkerStats['queries'],
  after: WorkerStats['queries'],
  ms: number,
): Record<string, number> {
  const rates = Object.entries(after).map(([name, count]) => {
    const perSecond = ((count - (before[name] ?? 0)) * 1_000) / ms
    return [name, Math.round(perSecond * 10) / 10]
  })
  return Object.fromEntries(rates.filter(([, rate]) => rate !== 0))
}
