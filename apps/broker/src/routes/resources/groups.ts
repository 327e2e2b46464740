// Consumer groups as resources, with the unnamed group under the name `default`.
import {
  type DeletedAnswer,
  fieldError,
  type GroupFigures,
  type GroupFiguresAnswer,
  type Limits,
  parseConsumerGroup,
  parseDecimal,
  parseQueueName,
  parseTransactionId,
  readFields,
  requestDefaults,
  shownGroup,
} from '@rouse/protocol'
import { type ConsumerGroupStats, groupsAfter, queuesWithGroup, statsOfNamed } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { noSuchGroup, runAdminQuery } from '../../http/admin-query.ts'
import { withoutNulls } from '../../http/json-body.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { deleteEverywhere, deleteFrom, moveGroup } from '../consumer-groups.ts'

type Params = { readonly group: string; readonly queue: string }
type Place = { readonly queue: string; readonly group: string }

export function groupRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context

  app.get('/api/v1/groups', async (request): Promise<GroupFiguresAnswer> => {
    const { after, limit } = readGroupPage(request.query, limits)
    const names = await runAdminQuery(pool, () => groupsAfter(pool, after, limit))
    const last = names.at(-1)
    const cursor = last === undefined || names.length < limit ? null : writeCursor(last)
    const wanted = new Set(names.map(keyOf))
    const queues = [...new Set(names.map(({ queue }) => queue))]
    return { groups: await figuresOf(queues, (one) => wanted.has(keyOf(one))), cursor }
  })

  app.get('/api/v1/groups/:group', async (request) => {
    const group = groupOf(request)
    const queues = await runAdminQuery(pool, () => queuesWithGroup(pool, group))
    const found = await figuresOf(queues, (one) => one.group === group)
    if (found.length === 0) throw noSuchGroup(group)
    return { consumerGroup: shownGroup(group), queues: found }
  })

  app.get('/api/v1/groups/:group/queues/:queue', async (request): Promise<GroupFigures> => {
    const { queue, group } = targetOf(request)
    const [found] = await figuresOf([queue], (one) => one.group === group)
    if (found === undefined) throw noSuchGroup(group)
    return found
  })

  app.delete('/api/v1/groups/:group', (request): Promise<DeletedAnswer> => {
    return deleteEverywhere(groupOf(request), context)
  })

  app.delete('/api/v1/groups/:group/queues/:queue', async (request): Promise<DeletedAnswer> => {
    const target = targetOf(request)
    if (!(await deleteFrom(target, context))) throw noSuchGroup(target.group)
    return { deleted: true }
  })

  app.post(
    '/api/v1/groups/:group/queues/:queue/seek',
    { preValidation: async (request) => void withoutNulls(request.body) },
    async (request) => {
      const target = targetOf(request)
      await moveGroup(target, request.body, context)
      return { success: true, queue: target.queue, consumerGroup: shownGroup(target.group) }
    },
  )

  async function figuresOf(
    queues: readonly string[],
    isWanted: (one: Place) => boolean,
  ): Promise<GroupFigures[]> {
    const known = await runAdminQuery(pool, () => statsOfNamed(pool, queues))
    return known.flatMap(({ queue, groups }) =>
      groups
        .filter(({ group }) => isWanted({ queue, group }))
        .map((group) => toFigures(queue, group, context.clock.wallMs())),
    )
  }
}

function groupOf(request: FastifyRequest): string {
  return parseConsumerGroup((request.params as Params).group)
}

function targetOf(request: FastifyRequest): Place {
  return { queue: parseQueueName((request.params as Params).queue), group: groupOf(request) }
}

function toFigures(queue: string, stats: ConsumerGroupStats, nowMs: number): GroupFigures {
  const { oldestPendingAt: oldest, lastSeenAt } = stats
  return {
    consumerGroup: shownGroup(stats.group),
    queue,
    ready: stats.pending,
    leased: stats.inFlight,
    retrying: stats.redeliveries,
    dead: stats.dead,
    oldestAgeMs: oldest === null ? null : Math.max(0, nowMs - oldest.getTime()),
    lastSeenAt: lastSeenAt.toISOString(),
  }
}

function keyOf({ queue, group }: Place): string {
  return JSON.stringify([queue, group])
}

/** A cursor is the last queue and group of the previous page. */
function writeCursor(place: Place): string {
  return Buffer.from(keyOf(place)).toString('base64url')
}

function readGroupPage(query: unknown, { pageSizeMax }: Limits) {
  const { limit, cursor } = query as Readonly<Record<string, unknown>>
  return readFields({
    after: () => (cursor === undefined ? undefined : readGroupCursor(cursor)),
    limit: () =>
      limit === undefined
        ? requestDefaults.pageSize
        : parseDecimal('limit', limit, { min: 1, max: pageSizeMax }),
  })
}

function readGroupCursor(cursor: unknown): Place {
  try {
    const place: unknown = JSON.parse(Buffer.from(String(cursor), 'base64url').toString('utf8'))
    const [queue, group] = place as [unknown, unknown]
    return { queue: parseQueueName(queue), group: parseTransactionId(group) }
  } catch {
    throw fieldError('invalid_request', 'cursor', 'must be a cursor from a response')
  }
}
