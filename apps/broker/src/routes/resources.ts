import { type DeletedAnswer, parseQueueName, type Queue, type QueuesAnswer } from '@rouse/protocol'
import {
  deleteQueue,
  type GroupStats,
  purgeUnderWay,
  type QueueStats,
  queueOptions,
  stats,
  statsPage,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { noSuchQueue, runAdminQuery } from '../http/admin-query.ts'
import { cursorAfter, readPage } from '../http/page.ts'
import type { BrokerContext } from '../worker/context.ts'

type Params = { readonly queue: string }

export function resourceRoutes(app: FastifyInstance, { pool, limits }: BrokerContext): void {
  app.get('/api/v1/resources/queues', async (request): Promise<QueuesAnswer> => {
    const page = readPage(request.query, limits)
    const queues = await runAdminQuery(pool, (executor) => statsPage(executor, page))
    const names = queues.map(({ queue }) => queue)
    return { queues: queues.map(toQueue), cursor: cursorAfter(names, page) }
  })

  app.get('/api/v1/resources/queues/:queue', async (request) => {
    const name = parseQueueName((request.params as Params).queue)
    const [queue] = await runAdminQuery(pool, (executor) => stats(executor, name))
    const options = await runAdminQuery(pool, () => queueOptions(pool, name))
    const purging = await runAdminQuery(pool, () => purgeUnderWay(pool, name))
    if (queue === undefined || options === undefined) throw noSuchQueue(name)
    return { ...toQueue(queue), options, ...(purging === undefined ? {} : { purging }) }
  })

  app.delete('/api/v1/resources/queues/:queue', async (request): Promise<DeletedAnswer> => {
    const name = parseQueueName((request.params as Params).queue)
    const existed = await runAdminQuery(pool, (executor) => deleteQueue(executor, name))
    if (!existed) throw noSuchQueue(name)
    return { deleted: true }
  })
}

function toQueue(queue: QueueStats): Queue {
  return { ...queue, groups: queue.groups.map((group) => toGroup(queue.queue, group)) }
}

export function toGroup(queue: string, { group, ...stats }: GroupStats): Queue['groups'][number] {
  return {
    consumerGroup: group,
    queue,
    ...stats,
    oldestPendingAt: stats.oldestPendingAt?.toISOString() ?? null,
    lastSeenAt: stats.lastSeenAt.toISOString(),
  }
}
