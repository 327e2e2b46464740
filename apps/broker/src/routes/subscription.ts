import { readPopBody, type SubscriptionBody, SubscriptionBodySchema } from '@rouse/protocol'
import { seek, stats } from '@rouse/sidecar'
import type { FastifyInstance } from 'fastify'
import { administer, noSuchQueue } from '../administration.ts'
import type { BrokerContext } from '../broker-context.ts'
import { withoutNulls } from '../json-body.ts'
import { bodySchema } from '../request-schema.ts'
import { subscribe } from '../statements/queue-details.ts'
import { readTarget } from './consumer-groups.ts'

type Params = { readonly group: string; readonly queue: string }

/** Says where a group begins: creates it there, or moves the one that exists. */
export function subscriptionRoute(app: FastifyInstance, context: BrokerContext): void {
  const { pool, coordinator } = context
  app.post(
    '/api/v1/consumer-groups/:group/queues/:queue/subscription',
    {
      schema: { body: bodySchema(SubscriptionBodySchema) },
      preValidation: async (request) => {
        request.body ??= {}
        withoutNulls(request.body)
      },
    },
    async (request) => {
      const { queue, group } = readTarget(request.params as Params)
      const { subscription } = readPopBody(request.body as SubscriptionBody)
      const [known] = await administer(pool, (executor) => stats(executor, queue))
      if (known === undefined) throw noSuchQueue(queue)
      if (known.groups.some((one) => one.group === group)) {
        const to = subscription === 'new' ? 'end' : new Date(beginMs(subscription))
        const woken = await administer(pool, (executor) => seek(executor, { queue, group, to }))
        coordinator.notifyPartitionFree(woken)
      } else {
        const target = { queue, group, from: subscription }
        if (!(await administer(pool, () => subscribe(pool, target)))) throw noSuchQueue(queue)
      }
      return { success: true, queue, consumerGroup: group }
    },
  )
}

function beginMs(subscription: 'all' | { readonly fromMs: number }): number {
  return subscription === 'all' ? 0 : subscription.fromMs
}
