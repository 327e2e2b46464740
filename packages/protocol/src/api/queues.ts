// The routes that configure and show queues and schedules.
import { ConfigureBodySchema, QueueSettingsBodySchema } from '../schemas/configure.ts'
import { PageQuerySchema } from '../schemas/name.ts'
import { WhyQuerySchema } from '../schemas/observe/why.ts'
import { QueueFiguresQuerySchema, ResourceQueuesQuerySchema } from '../schemas/queues.ts'
import { ScheduleBodySchema, ScheduleSettingsBodySchema } from '../schemas/schedules.ts'
import { type Endpoint, type Needs, needs, type Target } from './endpoint.ts'

/** A schedule pushes on behalf of its creator. */
const scheduleNeeds: Needs = [
  { verb: 'manage', target: 'body' },
  { verb: 'push', target: 'body' },
]

/** With `deadLetterTo`, the queue pushes to another one on behalf of its configurer. */
const configureNeeds = (target: Target): Needs => [
  { verb: 'manage', target },
  { verb: 'push', target: 'options' },
]

export const queueEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/api/v1/configure',
    summary: 'Creates a queue, or changes options of an existing one',
    needs: configureNeeds('body'),
    body: ConfigureBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/queues',
    summary: 'Lists queues with their figures',
    needs: needs('observe', 'any'),
    query: QueueFiguresQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/queues/:queue',
    summary: 'Shows a queue',
    needs: needs('observe', 'path'),
  },
  {
    method: 'PUT',
    path: '/api/v1/queues/:queue',
    summary: 'Creates a queue, or replaces namespace, task and all options of an existing one',
    needs: configureNeeds('path'),
    body: QueueSettingsBodySchema,
  },
  {
    method: 'PATCH',
    path: '/api/v1/queues/:queue',
    summary: 'Changes options of a queue',
    needs: configureNeeds('path'),
    body: QueueSettingsBodySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/queues/:queue',
    summary: 'Deletes a queue',
    needs: needs('manage', 'path'),
  },
  {
    method: 'GET',
    path: '/api/v1/resources/queues',
    summary: 'Lists queues with their consumer groups',
    needs: needs('observe', 'any'),
    query: ResourceQueuesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/resources/queues/:queue',
    summary: 'Shows a queue with its consumer groups and options',
    needs: needs('observe', 'path'),
  },
  {
    method: 'GET',
    path: '/api/v1/resources/namespaces',
    summary: 'Lists namespaces, for existing clients',
    needs: needs('observe', 'every'),
  },
  {
    method: 'GET',
    path: '/api/v1/resources/tasks',
    summary: 'Lists tasks, for existing clients',
    needs: needs('observe', 'every'),
  },
  {
    method: 'GET',
    path: '/api/v1/resources/overview',
    summary: 'Counts queues and messages, for existing clients',
    needs: needs('observe', 'every'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/resources/queues/:queue',
    summary: 'Deletes a queue',
    needs: needs('manage', 'path'),
  },
  {
    method: 'POST',
    path: '/api/v1/queues/:queue/pause',
    summary: 'Pauses delivery',
    needs: needs('manage', 'path'),
  },
  {
    method: 'POST',
    path: '/api/v1/queues/:queue/resume',
    summary: 'Resumes delivery',
    needs: needs('manage', 'path'),
  },
  {
    method: 'POST',
    path: '/api/v1/queues/:queue/purge',
    summary: 'Deletes all messages',
    needs: needs('manage', 'path'),
  },
  {
    method: 'GET',
    path: '/api/v1/queues/:queue/why',
    summary: 'Explains why no message is delivered',
    needs: needs('observe', 'path'),
    query: WhyQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/schedules',
    summary: 'Lists schedules',
    needs: needs('peek', 'every'),
    query: PageQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/schedules',
    summary: 'Creates or replaces a schedule',
    needs: scheduleNeeds,
    body: ScheduleBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/schedules/:name',
    summary: 'Shows a schedule',
    needs: needs('peek', 'found'),
  },
  {
    method: 'PUT',
    path: '/api/v1/schedules/:name',
    summary: 'Creates or replaces a schedule',
    needs: scheduleNeeds,
    body: ScheduleSettingsBodySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/schedules/:name',
    summary: 'Deletes a schedule',
    needs: needs('manage', 'found'),
  },
]
