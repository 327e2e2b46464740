// The routes that configure and show queues and schedules.
import { ConfigureBodySchema, QueueSettingsBodySchema } from '../schemas/configure.ts'
import { PageQuerySchema } from '../schemas/name.ts'
import { ResourceQueuesQuerySchema } from '../schemas/queues.ts'
import { ScheduleBodySchema, ScheduleSettingsBodySchema } from '../schemas/schedules.ts'
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
    path: '/api/v1/queues',
    summary: 'Lists queues with their figures',
    query: ResourceQueuesQuerySchema,
  },
  { method: 'GET', path: '/api/v1/queues/:queue', summary: 'Shows a queue' },
  {
    method: 'PUT',
    path: '/api/v1/queues/:queue',
    summary: 'Creates a queue, or replaces namespace, task and all options of an existing one',
    body: QueueSettingsBodySchema,
  },
  {
    method: 'PATCH',
    path: '/api/v1/queues/:queue',
    summary: 'Changes options of a queue',
    body: QueueSettingsBodySchema,
  },
  { method: 'DELETE', path: '/api/v1/queues/:queue', summary: 'Deletes a queue' },
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
  {
    method: 'GET',
    path: '/api/v1/resources/namespaces',
    summary: 'Lists namespaces, for existing clients',
  },
  { method: 'GET', path: '/api/v1/resources/tasks', summary: 'Lists tasks, for existing clients' },
  {
    method: 'GET',
    path: '/api/v1/resources/overview',
    summary: 'Counts queues and messages, for existing clients',
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
  { method: 'GET', path: '/api/v1/schedules/:name', summary: 'Shows a schedule' },
  {
    method: 'PUT',
    path: '/api/v1/schedules/:name',
    summary: 'Creates or replaces a schedule',
    body: ScheduleSettingsBodySchema,
  },
  { method: 'DELETE', path: '/api/v1/schedules/:name', summary: 'Deletes a schedule' },
]
