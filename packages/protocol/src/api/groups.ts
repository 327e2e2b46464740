// The routes that show and move consumer groups.
import {
  DeleteGroupQuerySchema,
  GroupSubscriptionBodySchema,
  LaggingQuerySchema,
  SeekBodySchema,
  SubscriptionBodySchema,
} from '../schemas/groups.ts'
import { PageQuerySchema } from '../schemas/name.ts'
import { type Endpoint, needs } from './endpoint.ts'

export const groupEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/api/v1/consumer-groups',
    summary: 'Lists the consumer groups of a page of queues',
    needs: needs('observe', 'every'),
    query: PageQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/groups',
    summary: 'Lists consumer groups',
    needs: needs('observe', 'every'),
    query: PageQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/groups/:group',
    summary: 'Shows a consumer group in every queue that has it',
    needs: needs('observe', 'every'),
  },
  {
    method: 'GET',
    path: '/api/v1/groups/:group/queues/:queue',
    summary: 'Shows a consumer group of a queue',
    needs: needs('observe', 'path'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/groups/:group',
    summary: 'Deletes a consumer group in every queue',
    needs: needs('manage', 'every'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/groups/:group/queues/:queue',
    summary: 'Deletes a consumer group of a queue',
    needs: needs('manage', 'path'),
  },
  {
    method: 'POST',
    path: '/api/v1/groups/:group/queues/:queue/seek',
    summary: 'Moves a consumer group to a time or to the end',
    needs: needs('manage', 'path'),
    body: SeekBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/consumer-groups/lagging',
    summary: 'Lists the partitions where a consumer group is behind, for existing clients',
    needs: needs('observe', 'every'),
    query: LaggingQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/consumer-groups/:group',
    summary: 'Shows a consumer group by queue and partition, for existing clients',
    needs: needs('observe', 'every'),
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek',
    summary: 'Moves a consumer group in one partition',
    needs: needs('manage', 'path'),
    body: SeekBodySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/consumer-groups/:group',
    summary: 'Deletes a consumer group in every queue',
    needs: needs('manage', 'every'),
    query: DeleteGroupQuerySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/consumer-groups/:group/queues/:queue',
    summary: 'Deletes a consumer group of a queue',
    needs: needs('manage', 'path'),
    query: DeleteGroupQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/queues/:queue/seek',
    summary: 'Moves a consumer group to a time or to the end',
    needs: needs('manage', 'path'),
    body: SeekBodySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/queues/:queue/subscription',
    summary: 'Sets where a consumer group starts',
    needs: needs('manage', 'path'),
    body: SubscriptionBodySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/consumer-groups/:group/subscription',
    summary: 'Sets where a consumer group starts, in one queue or in all that have it',
    needs: needs('manage', 'body'),
    body: GroupSubscriptionBodySchema,
  },
]
