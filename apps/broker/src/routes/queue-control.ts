import { type PausedAnswer, type PurgedAnswer, parseQueueName } from '@rouse/protocol'
import { pause, purge } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import type { BrokerContext } from '../worker/context.ts'

/** Operations on whole queues: pause, resume and purge. */
export function queueControlRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, coordinator } = context

  app.post('/api/v1/queues/:queue/pause', async (request): Promise<PausedAnswer> => {
    const queue = queueOf(request)
    await runAdminQuery(pool, (executor) => pause(executor, queue, true))
    return { queue, paused: true }
  })

  app.post('/api/v1/queues/:queue/resume', async (request): Promise<PausedAnswer> => {
    const queue = queueOf(request)
    coordinator.notifyPartitionFree(
      await runAdminQuery(pool, (executor) => pause(executor, queue, false)),
    )
    return { queue, paused: false }
  })

  app.post('/api/v1/queues/:queue/purge', async (request, reply): Promise<PurgedAnswer> => {
    const queue = queueOf(request)
    const purged = await runAdminQuery(pool, (executor) => purge(executor, queue))
    if (purged !== null) return { queue, purged }
    reply.code(202).header('location', `/api/v1/resources/queues/${encodeURIComponent(queue)}`)
    return { queue, purging: true }
  })
}

function queueOf(request: FastifyRequest): string {
  return parseQueueName((request.params as { readonly queue: string }).queue)
}
