import {
  type DeletedAnswer,
  fieldError,
  type GroupsAnswer,
  parseConsumerGroup,
  parseQueueName,
  parseTime,
  type SeekBody,
  SeekBodySchema,
} from '@rouse/protocol'
import { deleteGroup, queuePlace, queuesWithGroup, seek, statsPage } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { noSuchGroup, runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { cursorAfter, readPage } from '../http/page.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { toGroup } from './queues.ts'

type Params = { readonly group: string; readonly queue: string }

export function consumerGroupRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, coordinator, limits } = context

  /** A waiting pop creates the group again, and it gets every message that is kept. */
  async function deleteFrom(queue: string, group: string): Promise<boolean> {
    const existed = await runAdminQuery(pool, (executor) => deleteGroup(executor, queue, group))
    const place = existed ? await runAdminQuery(pool, () => queuePlace(pool, queue)) : undefined
    if (place !== undefined) {
      const { namespace, task } = place
      coordinator.notifyPartitionFree([
        { queue, partition: null, group, namespace, task, count: 0 },
      ])
    }
    return existed
  }

  /** The limit counts queues; a page has all groups of each. */
  app.get('/api/v1/consumer-groups', async (request): Promise<GroupsAnswer> => {
    const page = readPage(request.query, limits)
    const queues = await runAdminQuery(pool, (executor) => statsPage(executor, page))
    const names = queues.map(({ queue }) => queue)
    return {
      groups: queues.flatMap(({ queue, groups }) => groups.map((group) => toGroup(queue, group))),
      cursor: cursorAfter(names, page),
    }
  })

  app.delete('/api/v1/consumer-groups/:group', async (request): Promise<DeletedAnswer> => {
    const group = parseConsumerGroup((request.params as Params).group)
    const having = await runAdminQuery(pool, () => queuesWithGroup(pool, group))
    let found = false
    for (const queue of having) {
      found = (await deleteFrom(queue, group)) || found
    }
    if (!found) throw noSuchGroup(group)
    return { deleted: true }
  })

  app.delete(
    '/api/v1/consumer-groups/:group/queues/:queue',
    async (request): Promise<DeletedAnswer> => {
      const { queue, group } = readTarget(request.params as Params)
      const existed = await deleteFrom(queue, group)
      if (!existed) throw noSuchGroup(group)
      return { deleted: true }
    },
  )

  app.post(
    '/api/v1/consumer-groups/:group/queues/:queue/seek',
    {
      schema: { body: bodySchema(SeekBodySchema) },
      preValidation: async (request) => void withoutNulls(request.body),
    },
    async (request) => {
      const target = {
        ...readTarget(request.params as Params),
        to: readSeek(request.body as SeekBody),
      }
      coordinator.notifyPartitionFree(
        await runAdminQuery(pool, (executor) => seek(executor, target)),
      )
      return { success: true, queue: target.queue, consumerGroup: target.group }
    },
  )
}

export function readTarget(params: Params): { readonly queue: string; readonly group: string } {
  return { queue: parseQueueName(params.queue), group: parseConsumerGroup(params.group) }
}

function readSeek({ timestamp, toEnd }: SeekBody): Date | 'end' {
  if ((timestamp === undefined) === (toEnd !== true)) {
    throw fieldError('invalid_request', 'timestamp', 'or toEnd must be given, and not both')
  }
  return timestamp === undefined ? 'end' : new Date(parseTime('timestamp', timestamp))
}
