// The routes that show and move consumer groups.
import {
  DeleteGroupQuerySchema,
  GroupSubscriptionBodySchema,
  LaggingQuerySchema,
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
    method: 'GET',
    path: '/api/v1/groups',
    summary: 'Lists consumer groups',
    query: PageQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/groups/:group',
    summary: 'Shows a consumer group in every queue that has it',
  },
  {
    method: 'GET',
    path: '/api/v1/groups/:group/queues/:queue',
    summary: 'Shows a consumer group of a queue',
  },
  {
    method: 'DELETE',
    path: '/api/v1/groups/:group',
    summary: 'Deletes a consumer group in every queue',
  },
  {
    method: 'DELETE',
    path: '/api/v1/groups/:group/queues/:queue',
    summary: 'Deletes a consumer group of a queue',
  },
  {
    method: 'POST',
    path: '/api/v1/groups/:group/queues/:queue/seek',
    summary: 'Moves a consumer group to a time or to the end',
    body: SeekBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/consumer-groups/lagging',
    summary: 'Lists the partitions where a consumer group is behind, for existing clients',
    query: LaggingQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/consumer-groups/:group',
    summary: 'Shows a consumer group by queue and partition, for existing clients',
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek',
    summary: 'Moves a consumer group in one partition',
    body: SeekBodySchema,
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
