// The routes that show and move consumer groups.
import {
  DeleteGroupQuerySchema,
  GroupSubscriptionBodySchema,
  SeekBodySchema,
  SubscriptionBodySchema,
} from '../schemas/groups.ts'
import { PageQuerySchema } from '../schemas/name.ts'
import type { Endpoint } from './endpoint.ts'

export const groupEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/api/v1/consumer-groups',
    summary: 'Lists the consumer groups of a page of queues',
    query: PageQuerySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/consumer-groups/:group',
    summary: 'Deletes a consumer group in every queue',
    query: DeleteGroupQuerySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/consumer-groups/:group/queues/:queue',
    summary: 'Deletes a consumer group of a queue',
    query: DeleteGroupQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/queues/:queue/seek',
    summary: 'Moves a consumer group to a time or to the end',
    body: SeekBodySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/queues/:queue/subscription',
    summary: 'Sets where a consumer group starts',
    body: SubscriptionBodySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/subscription',
    summary: 'Sets where a consumer group starts, in one queue or in all that have it',
    body: GroupSubscriptionBodySchema,
  },
]
