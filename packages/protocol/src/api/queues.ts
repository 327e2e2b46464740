// The routes that configure and show queues and schedules.
import { ConfigureBodySchema } from '../schemas/configure.ts'
import { PageQuerySchema } from '../schemas/name.ts'
import { ResourceQueuesQuerySchema } from '../schemas/queues.ts'
import { ScheduleBodySchema } from '../schemas/schedules.ts'
import { WhyQuerySchema } from '../schemas/why.ts'
import type { Endpoint } from './endpoint.ts'

export const queueEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/api/v1/configure',
    summary: 'Creates a queue, or changes options of an existing one',
    body: ConfigureBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/resources/queues',
    summary: 'Lists queues with their consumer groups',
    query: ResourceQueuesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/resources/queues/:queue',
    summary: 'Shows a queue with its consumer groups and options',
  },
  { method: 'DELETE', path: '/api/v1/resources/queues/:queue', summary: 'Deletes a queue' },
  { method: 'POST', path: '/api/v1/queues/:queue/pause', summary: 'Pauses delivery' },
  { method: 'POST', path: '/api/v1/queues/:queue/resume', summary: 'Resumes delivery' },
  { method: 'POST', path: '/api/v1/queues/:queue/purge', summary: 'Deletes all messages' },
  {
    method: 'GET',
    path: '/api/v1/queues/:queue/why',
    summary: 'Explains why no message is delivered',
    query: WhyQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/schedules',
    summary: 'Lists schedules',
    query: PageQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/schedules',
    summary: 'Creates or replaces a schedule',
    body: ScheduleBodySchema,
  },
  { method: 'DELETE', path: '/api/v1/schedules/:name', summary: 'Deletes a schedule' },
]
