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
import { type Endpoint, needs } from './endpoint.ts'

export const messageEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/api/v1/messages',
    summary: 'Lists the messages of a queue',
    needs: needs('peek', 'query'),
    query: MessagesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/messages/:partitionId/:transactionId',
    summary: 'Shows a message, with its state in every consumer group',
    needs: needs('peek', 'found'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/messages/:partitionId/:transactionId',
    summary: 'Deletes the dead letters of a message',
    needs: needs('manage', 'found'),
  },
  {
    method: 'GET',
    path: '/api/v1/dlq',
    summary: 'Lists dead letters, with the errors of all attempts',
    needs: needs('peek', 'query'),
    query: DeadLettersQuerySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/dlq',
    summary: 'Deletes dead letters of a queue permanently',
    needs: needs('manage', 'query'),
    query: PurgeLettersQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dlq/groups',
    summary: 'Counts dead letters by error',
    needs: needs('peek', 'query'),
    query: DeadLetterGroupsQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/dlq/redrive',
    summary: 'Delivers dead letters again',
    needs: needs('manage', 'body'),
    body: RedriveBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dlq/redrive/:id',
    summary: 'Shows a redrive',
    needs: needs('observe', 'found'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/dlq/redrive/:id',
    summary: 'Cancels a redrive',
    needs: needs('manage', 'found'),
  },
  {
    method: 'GET',
    path: '/api/v1/dead-letters',
    summary: 'Lists dead letters, newest first, with the errors of all attempts',
    needs: needs('peek', 'query'),
    query: DeadLettersPageQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dead-letters/:id',
    summary: 'Shows the dead letters of a message, one per consumer group',
    needs: needs('peek', 'found'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/dead-letters',
    summary: 'Deletes dead letters of a queue permanently',
    needs: needs('manage', 'query'),
    query: PurgeLettersQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dead-letters/errors',
    summary: 'Counts dead letters by error',
    needs: needs('peek', 'query'),
    query: DeadLetterGroupsQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/dead-letters/redrives',
    summary: 'Delivers dead letters again',
    needs: needs('manage', 'body'),
    body: RedriveBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/dead-letters/redrives/:id',
    summary: 'Shows a redrive',
    needs: needs('observe', 'found'),
  },
  {
    method: 'DELETE',
    path: '/api/v1/dead-letters/redrives/:id',
    summary: 'Cancels a redrive',
    needs: needs('manage', 'found'),
  },
  {
    method: 'POST',
    path: '/api/v1/traces',
    summary: 'Adds an event to the timeline of a message',
    needs: needs('pop', 'found'),
    body: TraceBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/traces/:partitionId/:transactionId',
    summary: 'Shows the timeline of a message',
    needs: needs('peek', 'found'),
    query: MessageTracesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/traces/by-name/:name',
    summary: 'Lists events with a name, newest first',
    needs: needs('peek', 'every'),
    query: NamedTracesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/traces/names',
    summary: 'Lists the names of events',
    needs: needs('peek', 'every'),
    query: TraceNamesQuerySchema,
  },
]
