// `/metrics`: counters and gauges of this node as text, from any of its workers.
import { databaseFigures } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { writeDatabaseMetrics } from '../../observe/metrics/database-metrics.ts'
import { Exposition } from '../../observe/metrics/exposition.ts'
import { writeNodeMetrics } from '../../observe/metrics/node-metrics.ts'
import { writeQueueCounters, writeQueueGauges } from '../../observe/metrics/queue-metrics.ts'
import type { BrokerContext } from '../../worker/context.ts'

/** Scrapers give up after some seconds. What the database does not answer in this time is left out. */
const databaseMsMax = 2_000

export function metricsRoute(app: FastifyInstance, context: BrokerContext): void {
  const { config, pool, queueList } = context

  app.get('/metrics', async (_request, reply) => {
    const [metrics, snapshot, database] = await Promise.all([
      context.metrics(),
      orNothing(queueList.all()),
      orNothing(databaseFigures(pool, { timeoutMs: databaseMsMax })),
    ])
    const out = new Exposition()
    writeNodeMetrics(out, metrics)
    writeQueueCounters(out, metrics)
    if (snapshot !== undefined) {
      const figures = snapshot.queues.map((one) => one.figures)
      writeQueueGauges(out, figures, metrics, config.metricsQueuesMax)
    }
    if (database !== undefined) writeDatabaseMetrics(out, database)
    return reply.type('text/plain; version=0.0.4; charset=utf-8').send(out.text())
  })
}

/** A node whose database does not answer still shows its own metrics. */
async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  const timeout = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), databaseMsMax).unref()
  })
  return await Promise.race([answer.catch(() => undefined), timeout])
}
