// The routes that show and end single messages: lists, dead letters, traces.
import {
  DeadLetterGroupsQuerySchema,
  DeadLettersPageQuerySchema,
  DeadLettersQuerySchema,
  PurgeLettersQuerySchema,
  RedriveBodySchema,
} from '../schemas/dead-letters.ts'
import { MessagesQuerySchema } from '../schemas/messages.ts'
import {
  MessageTracesQuerySchema,
  NamedTracesQuerySchema,
  TraceBodySchema,
  TraceNamesQuerySchema,
} from '../schemas/traces.ts'
import type { Endpoint } from './endpoint.ts'

export const messageEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/api/v1/messages',
    summary: 'Lists the messages of a queue',
    query: MessagesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/messages/:partitionId/:transactionId',
    summary: 'Shows a message, with its state in every consumer group',
  },
  {
    method: 'DELETE',
    path: '/api/v1/messages/:partitionId/:transactionId',
    summary: 'Deletes the dead letters of a message',
  },
  {
    method: 'GET',
    path: '/api/v1/dlq',
    summary: 'Lists dead letters, with the errors of all attempts',
    query: DeadLettersQuerySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/dlq',
    summary: 'Deletes dead letters of a queue permanently',
    query: PurgeLettersQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dlq/groups',
    summary: 'Counts dead letters by error',
    query: DeadLetterGroupsQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/dlq/redrive',
    summary: 'Delivers dead letters again',
    body: RedriveBodySchema,
  },
  { method: 'GET', path: '/api/v1/dlq/redrive/:id', summary: 'Shows a redrive' },
  { method: 'DELETE', path: '/api/v1/dlq/redrive/:id', summary: 'Cancels a redrive' },
  {
    method: 'GET',
    path: '/api/v1/dead-letters',
    summary: 'Lists dead letters, newest first, with the errors of all attempts',
    query: DeadLettersPageQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dead-letters/:id',
    summary: 'Shows the dead letters of a message, one per consumer group',
  },
  {
    method: 'DELETE',
    path: '/api/v1/dead-letters',
    summary: 'Deletes dead letters of a queue permanently',
    query: PurgeLettersQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dead-letters/errors',
    summary: 'Counts dead letters by error',
    query: DeadLetterGroupsQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/dead-letters/redrives',
    summary: 'Delivers dead letters again',
    body: RedriveBodySchema,
  },
  { method: 'GET', path: '/api/v1/dead-letters/redrives/:id', summary: 'Shows a redrive' },
  { method: 'DELETE', path: '/api/v1/dead-letters/redrives/:id', summary: 'Cancels a redrive' },
  {
    method: 'POST',
    path: '/api/v1/traces',
    summary: 'Adds an event to the timeline of a message',
    body: TraceBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/traces/:partitionId/:transactionId',
    summary: 'Shows the timeline of a message',
    query: MessageTracesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/traces/by-name/:name',
    summary: 'Lists events with a name, newest first',
    query: NamedTracesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/traces/names',
    summary: 'Lists the names of events',
    query: TraceNamesQuerySchema,
  },
]
