// The event stream: what happens in the cluster, as server-sent events.
import { fieldError, parseBoolean, parseChoice, readFields } from '@rouse/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { timeOfEventId } from '../../observe/events/node-event.ts'
import { QueueFilter, readQueues } from '../../observe/events/queue-filter.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { EventStream, type StreamOptions } from '../../worker/event-stream.ts'

type Query = Readonly<Record<string, unknown>>

export function eventsRoute(app: FastifyInstance, context: BrokerContext): void {
  const { events, openPolls, rateLimits } = context

  app.get('/api/v1/events', { exposeHeadRoute: false }, (request, reply) => {
    const { sinceMs, ...options } = readStream(request)
    events.checkRoom(options.owner)
    const { keyId, limits } = request.principal
    if (keyId !== undefined && limits !== undefined) {
      rateLimits.openPop(keyId, limits)
      reply.raw.once('close', () => rateLimits.popClosed(keyId))
    }
    reply.hijack()
    reply.raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // A connection that stays open after the stream would delay a drain.
      connection: 'close',
      // nginx would collect events before it passes them on.
      'x-accel-buffering': 'no',
      'x-request-id': request.id,
    })
    const stream = new EventStream(reply.raw, options)
    reply.raw.write('retry: 1000\n\n')
    reply.raw.once('close', () => events.closed(stream))
    openPolls.addStream(request.principal, reply.raw, () => stream.end('unauthenticated'))
    events.open(stream, sinceMs).catch((error: unknown) => {
      context.log.warn({ err: error, requestId: request.id }, 'a stream of events failed')
      reply.raw.destroy()
    })
  })
}

function readStream({
  query: given,
  headers,
  principal,
}: FastifyRequest): StreamOptions & { readonly sinceMs: number | undefined } {
  const query = given as Query
  const flag = (name: string) => query[name] !== undefined && parseBoolean(name, query[name])
  const { patterns, ...options } = readFields({
    patterns: () => readQueues(query.queues),
    scope: () =>
      parseChoice('scope', query.scope ?? 'cluster', ['node', 'cluster']) as 'node' | 'cluster',
    wakes: () => flag('wakes'),
    groups: () => flag('groups'),
    once: () => flag('once'),
    sinceMs: () => readLastId(query.lastEventId ?? headers['last-event-id']),
  })
  const owner = principal.keyId ?? principal.name
  return { ...options, owner, filter: new QueueFilter(principal.grants, patterns) }
}

function readLastId(value: unknown): number | undefined {
  if (value === undefined || value === '') return undefined
  const atMs = typeof value === 'string' ? timeOfEventId(value) : undefined
  if (atMs === undefined) {
    throw fieldError('invalid_request', 'lastEventId', 'must be the id of an event')
  }
  return atMs
}
