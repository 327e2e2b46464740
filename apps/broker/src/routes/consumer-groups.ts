// Consumer groups: list and delete them, move them to another position, set where they start.
import {
  type DeletedAnswer,
  fieldError,
  type GroupSubscriptionBody,
  type GroupsAnswer,
  type PopOptions,
  parseConsumerGroup,
  parsePartitionName,
  parseQueueName,
  parseTime,
  RouseError,
  readPopBody,
  type SeekBody,
  type SubscriptionBody,
} from '@rouse/protocol'
import {
  deleteGroup,
  queuePlace,
  queuesWithGroup,
  seek,
  seekPartition,
  stats,
  statsPage,
  subscribe,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { noSuchGroup, noSuchQueue, runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { cursorAfter, readPage } from '../http/page.ts'
import type { BrokerContext } from '../worker/context.ts'
import { toGroup } from './queues.ts'

type Params = { readonly group: string; readonly queue: string; readonly partition: string }
type Target = { readonly queue: string; readonly group: string }
type Subscription = PopOptions['subscription']

export function consumerGroupRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context

  /** The limit is a number of queues. A page has all groups of each of its queues. */
  app.get('/api/v1/consumer-groups', async (request): Promise<GroupsAnswer> => {
    const page = readPage(request.query, limits)
    const queues = await runAdminQuery(pool, (executor) => statsPage(executor, page))
    const names = queues.map(({ queue }) => queue)
    return {
      groups: queues.flatMap(({ queue, groups }) => groups.map((group) => toGroup(queue, group))),
      cursor: cursorAfter(names, page),
    }
  })

  app.delete('/api/v1/consumer-groups/:group', (request): Promise<DeletedAnswer> => {
    return deleteEverywhere(parseConsumerGroup((request.params as Params).group), context)
  })

  app.delete(
    '/api/v1/consumer-groups/:group/queues/:queue',
    async (request): Promise<DeletedAnswer> => {
      const target = readTarget(request.params as Params)
      if (!(await deleteFrom(target, context))) throw noSuchGroup(target.group)
      return { deleted: true }
    },
  )

  app.post(
    '/api/v1/consumer-groups/:group/queues/:queue/seek',
    {
      preValidation: async (request) => void withoutNulls(request.body),
    },
    async (request) => {
      const target = readTarget(request.params as Params)
      await moveGroup(target, request.body, context)
      return { success: true, queue: target.queue, consumerGroup: target.group }
    },
  )

  app.post(
    '/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek',
    { preValidation: async (request) => void withoutNulls(request.body) },
    async (request) => {
      const { queue, group } = readTarget(request.params as Params)
      const partition = parsePartitionName((request.params as Params).partition)
      const target = { queue, group, partition, to: readSeek(request.body as SeekBody) }
      const woken = await runAdminQuery(pool, (executor) => seekPartition(executor, target))
      context.coordinator.notifyPartitionFree(woken)
      return { success: true, queue, partition, consumerGroup: group }
    },
  )

  subscriptionRoutes(app, context)
}

/** Sets where a group starts: creates the group at that position, or moves an existing group there. */
function subscriptionRoutes(app: FastifyInstance, context: BrokerContext): void {
  const preValidation = async (request: { body: unknown }) => {
    request.body ??= {}
    withoutNulls(request.body)
  }

  app.post(
    '/api/v1/consumer-groups/:group/queues/:queue/subscription',
    { preValidation },
    async (request) => {
      const target = readTarget(request.params as Params)
      await begin(target, readSubscription(request.body as SubscriptionBody), context)
      return { success: true, queue: target.queue, consumerGroup: target.group }
    },
  )

  // Old clients send no queue: the request then applies to every queue that has the group.
  app.post('/api/v1/consumer-groups/:group/subscription', { preValidation }, async (request) => {
    const group = parseConsumerGroup((request.params as Params).group)
    const body = request.body as GroupSubscriptionBody
    const subscription = readSubscription(body)
    if (body.queue === undefined) {
      const queues = await moveEverywhere(group, subscription, context)
      return { success: true, queues, consumerGroup: group }
    }
    const queue = parseQueueName(body.queue)
    await begin({ queue, group }, subscription, context)
    return { success: true, queue, consumerGroup: group }
  })
}

function readTarget(params: Params): Target {
  return { queue: parseQueueName(params.queue), group: parseConsumerGroup(params.group) }
}

function readSeek({ timestamp, toEnd }: SeekBody): Date | 'end' {
  if ((timestamp === undefined) === (toEnd !== true)) {
    throw fieldError('invalid_request', 'timestamp', 'or toEnd must be given, and not both')
  }
  return timestamp === undefined ? 'end' : new Date(parseTime('timestamp', timestamp))
}

/** Moves a group as the body of a seek says. */
export function moveGroup(target: Target, body: unknown, context: BrokerContext): Promise<void> {
  return moveTo(target, readSeek(body as SeekBody), context)
}

export async function deleteEverywhere(
  group: string,
  context: BrokerContext,
): Promise<DeletedAnswer> {
  const having = await runAdminQuery(context.pool, () => queuesWithGroup(context.pool, group))
  let found = false
  for (const queue of having) {
    found = (await deleteFrom({ queue, group }, context)) || found
  }
  if (!found) throw noSuchGroup(group)
  return { deleted: true }
}

/** Wakes the group's waiters: a waiting pop creates the group again and gets every message that is kept. */
export async function deleteFrom(
  target: Target,
  { pool, coordinator }: BrokerContext,
): Promise<boolean> {
  const { queue, group } = target
  const existed = await runAdminQuery(pool, (executor) => deleteGroup(executor, queue, group))
  const place = existed ? await runAdminQuery(pool, () => queuePlace(pool, queue)) : undefined
  if (place !== undefined) {
    const { namespace, task } = place
    coordinator.notifyPartitionFree([{ queue, partition: null, group, namespace, task, count: 0 }])
  }
  return existed
}

/** Rejects an empty request, because it would move an existing group back to the start. */
function readSubscription(body: SubscriptionBody): Subscription {
  const { subscriptionMode, subscriptionFrom, subscriptionTimestamp } = body
  if (subscriptionFrom !== undefined && subscriptionTimestamp !== undefined) {
    throw fieldError(
      'invalid_request',
      'subscriptionFrom',
      'and subscriptionTimestamp are mutually exclusive',
    )
  }
  if ((subscriptionMode ?? subscriptionFrom ?? subscriptionTimestamp) === undefined) {
    throw fieldError('invalid_request', 'subscriptionMode', 'or subscriptionFrom must be given')
  }
  const from = subscriptionFrom ?? subscriptionTimestamp
  return readPopBody({ subscriptionMode, subscriptionFrom: from }).subscription
}

async function begin(
  { queue, group }: Target,
  subscription: Subscription,
  context: BrokerContext,
): Promise<void> {
  const { pool } = context
  const [known] = await runAdminQuery(pool, (executor) => stats(executor, queue))
  if (known === undefined) throw noSuchQueue(queue)
  if (known.groups.some((one) => one.group === group)) {
    await move({ queue, group }, subscription, context)
    return
  }
  const target = { queue, group, from: subscription }
  if (!(await runAdminQuery(pool, () => subscribe(pool, target)))) throw noSuchQueue(queue)
}

/** Returns the queues in which the group was moved. Skips queues in which it was deleted meanwhile. */
async function moveEverywhere(
  group: string,
  subscription: Subscription,
  context: BrokerContext,
): Promise<string[]> {
  const known = await runAdminQuery(context.pool, (executor) => stats(executor))
  const having = known.filter(({ groups }) => groups.some((one) => one.group === group))
  const moved: string[] = []
  for (const { queue } of having) {
    try {
      await move({ queue, group }, subscription, context)
      moved.push(queue)
    } catch (error) {
      if (!(error instanceof RouseError && error.code === 'not_found')) throw error
    }
  }
  if (moved.length === 0) throw noSuchGroup(group)
  return moved
}

function move(target: Target, subscription: Subscription, context: BrokerContext): Promise<void> {
  if (subscription === 'new') return moveTo(target, 'end', context)
  return moveTo(target, new Date(subscription === 'all' ? 0 : subscription.fromMs), context)
}

async function moveTo(
  target: Target,
  to: Date | 'end',
  { pool, coordinator }: BrokerContext,
): Promise<void> {
  const woken = await runAdminQuery(pool, (executor) => seek(executor, { ...target, to }))
  coordinator.notifyPartitionFree(woken)
}
