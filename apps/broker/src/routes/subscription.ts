import {
  fieldError,
  type GroupSubscriptionBody,
  GroupSubscriptionBodySchema,
  type PopOptions,
  parseConsumerGroup,
  parseQueueName,
  RouseError,
  readPopBody,
  type SubscriptionBody,
  SubscriptionBodySchema,
} from '@rouse/protocol'
import { seek, stats, subscribe } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { noSuchGroup, noSuchQueue, runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { readTarget } from './consumer-groups.ts'

type Params = { readonly group: string; readonly queue: string }
type Subscription = PopOptions['subscription']
type Target = { readonly queue: string; readonly group: string }

/** Sets where a group starts: creates it there, or moves the existing one. */
export function subscriptionRoute(app: FastifyInstance, context: BrokerContext): void {
  const preValidation = async (request: { body: unknown }) => {
    request.body ??= {}
    withoutNulls(request.body)
  }

  app.post(
    '/api/v1/consumer-groups/:group/queues/:queue/subscription',
    { schema: { body: bodySchema(SubscriptionBodySchema) }, preValidation },
    async (request) => {
      const target = readTarget(request.params as Params)
      await begin(target, readSubscription(request.body as SubscriptionBody), context)
      return { success: true, queue: target.queue, consumerGroup: target.group }
    },
  )

  // Old clients send no queue: the request then applies to every queue that has the group.
  app.post(
    '/api/v1/consumer-groups/:group/subscription',
    { schema: { body: bodySchema(GroupSubscriptionBodySchema) }, preValidation },
    async (request) => {
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
    },
  )
}

/** An empty request is rejected, because it would move an existing group back to the start. */
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

/** Returns the queues in which the group was moved, without those that lost it in the meantime. */
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

async function move(
  target: Target,
  subscription: Subscription,
  { pool, coordinator }: BrokerContext,
): Promise<void> {
  const to = subscription === 'new' ? 'end' : new Date(beginMs(subscription))
  const woken = await runAdminQuery(pool, (executor) => seek(executor, { ...target, to }))
  coordinator.notifyPartitionFree(woken)
}

function beginMs(subscription: 'all' | { readonly fromMs: number }): number {
  return subscription === 'all' ? 0 : subscription.fromMs
}
