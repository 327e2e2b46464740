// The worker's part of `/stats`: reports its own stats once a second, and requests those of the node from the
// primary.
import { RouseError } from '@rouse/protocol'
import type { SidecarDbPool } from '@rouse/sidecar'
import type pg from 'pg'
import type { Outbox, WorkerMessage, WorkerStats } from '../ipc.ts'

type Stats = Readonly<Record<string, unknown>>

const reportMs = 1_000
/** The primary usually answers in a millisecond. After this time the last answer is used. */
const answerMsMax = 250

export interface StatsClient {
  start(): void
  stop(): void
  ask(): Promise<Stats>
  answered(id: number, stats: Stats): void
}

export function createStatsClient(options: {
  readonly outbox: Outbox<WorkerMessage>
  readonly sidecar: SidecarDbPool
  readonly pool: pg.Pool
  readonly counts: { readonly requests: number }
  readonly nowMs: () => number
}): StatsClient {
  const { outbox, sidecar, pool, counts, nowMs } = options
  const max = pool.options.max
  const asked = new Map<number, (stats: Stats) => void>()
  let lastId = 0
  let lastStats: Stats | undefined
  let timer: NodeJS.Timeout | undefined
  let rates: WorkerStats['queriesPerSecond'] = {}
  let counted: { readonly queries: WorkerStats['queries']; readonly atMs: number } | undefined

  function workerStats(): WorkerStats {
    const { totalCount, idleCount, waitingCount, options } = pool
    return {
      ...sidecar.stats(),
      pool: { total: totalCount, idle: idleCount, queued: waitingCount, limit: options.max, max },
      requests: counts.requests,
      queriesPerSecond: rates,
    }
  }

  function report(): void {
    const { queries } = sidecar.stats()
    const atMs = nowMs()
    if (counted !== undefined) rates = ratesOf(counted.queries, queries, atMs - counted.atMs)
    counted = { queries, atMs }
    outbox.post({ type: 'workerStats', stats: workerStats() })
  }

  return {
    start() {
      timer ??= setInterval(report, reportMs)
      report()
    },
    stop: () => clearInterval(timer),
    ask() {
      lastId += 1
      const id = lastId
      outbox.post({ type: 'workerStats', stats: workerStats() })
      outbox.post({ type: 'askStats', id })
      return new Promise((resolve, reject) => {
        const timeout = setTimeout(() => {
          asked.delete(id)
          if (lastStats !== undefined) resolve(lastStats)
          else reject(new RouseError('overloaded', 'the primary did not answer in time'))
        }, answerMsMax)
        asked.set(id, (stats) => {
          clearTimeout(timeout)
          resolve(stats)
        })
      })
    },
    answered(id, stats) {
      lastStats = stats
      asked.get(id)?.(stats)
      asked.delete(id)
    },
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
