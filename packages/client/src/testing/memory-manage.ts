// The routes that manage queues, consumer groups and schedules.

import { type Body, type MemoryAnswer, type MemoryRequest, problem } from './memory-http.ts'
import { type MemoryGroup, type MemoryQueue, optionDefaults } from './memory-queue.ts'
import type { MemoryServer } from './memory-server.ts'

export function manageRoutes(
  server: MemoryServer,
  request: MemoryRequest,
): MemoryAnswer | undefined {
  switch (request.path[0] ?? '') {
    case 'configure':
      return configure(server, request.body)
    case 'resources':
      return queueRoute(server, { ...request, path: request.path.slice(1) })
    case 'queues':
      return queueRoute(server, request)
    case 'groups':
      return groupRoute(server, request)
    case 'schedules':
      return scheduleRoute(server, request)
    default:
      return undefined
  }
}

function configure(server: MemoryServer, { queue: name, options = {} }: Body): MemoryAnswer {
  const queue = server.queue(name)
  const given = Object.entries(options).map(([option, value]) => [
    option,
    value ?? optionDefaults[option],
  ])
  const merged = { ...queue.options, ...Object.fromEntries(given) }
  if (typeof options.retryBackoffMs === 'number') merged.retryBackoffMs = [options.retryBackoffMs]
  // The last one set of the two counts.
  if (options.retryBackoffMs !== undefined) merged.retryBackoff = options.retryBackoff
  queue.options = merged
  server.wake()
  return { status: 200, body: { configured: true, options: merged } }
}

function queueRoute(
  server: MemoryServer,
  { method, path }: MemoryRequest,
): MemoryAnswer | undefined {
  const [, name, verb] = path
  if (name === undefined) {
    const queues = [...server.queues.values()].map((queue) => figures(server, queue))
    return { status: 200, body: { queues, cursor: null } }
  }
  const queue = server.queues.get(name)
  if (queue === undefined) return notFound(`queue "${name}"`)
  switch (`${method} ${verb ?? ''}`) {
    case 'GET ':
      return { status: 200, body: { ...figures(server, queue), options: queue.options } }
    case 'GET why':
      return { status: 200, body: { queue: name, reasons: [] } }
    case 'DELETE ':
      server.queues.delete(name)
      server.unschedule(name)
      return { status: 200, body: { deleted: true } }
    case 'POST purge':
      queue.clear()
      server.unschedule(name)
      return { status: 200, body: { queue: name, purged: 0 } }
    case 'POST pause':
    case 'POST resume':
      queue.paused = verb === 'pause'
      server.wake()
      return { status: 200, body: { queue: name, paused: queue.paused } }
    default:
      return undefined
  }
}

function figures(server: MemoryServer, queue: MemoryQueue): Body {
  const groups = [...queue.groups.values()]
  const sum = (field: 'leased' | 'retrying'): number =>
    groups.reduce((total, group) => total + groupFigures(queue, group)[field], 0)
  const ready = groups.map((group) => groupFigures(queue, group).ready)
  return {
    queue: queue.name,
    namespace: null,
    task: null,
    paused: queue.paused,
    createdAt: new Date(server.nowMs).toISOString(),
    ready: groups.length === 0 ? queue.messages.length : Math.max(...ready),
    leased: sum('leased'),
    retrying: sum('retrying'),
    scheduled: server.countScheduled(queue.name),
    dead: queue.letters.length,
    consumers: 0,
    oldestAgeMs: null,
    held: null,
    state: queue.paused ? 'paused' : 'ok',
  }
}

function groupFigures(queue: MemoryQueue, { name, deliveries }: MemoryGroup): Body {
  const count = (matches: (delivery: (typeof deliveries)[number]) => boolean): number =>
    deliveries.filter(matches).length
  return {
    consumerGroup: name,
    queue: queue.name,
    ready: count(({ state, attempt }) => state === 'ready' && attempt === 0),
    leased: count(({ state }) => state === 'leased'),
    retrying: count(({ state, attempt }) => state === 'ready' && attempt > 0),
    dead: queue.letters.filter(({ group }) => group === name).length,
    oldestAgeMs: null,
    lastSeenAt: new Date(0).toISOString(),
  }
}

function groupRoute(
  server: MemoryServer,
  { method, path, body }: MemoryRequest,
): MemoryAnswer | undefined {
  const [, name, , queueName = '', verb] = path
  if (name === undefined) {
    const groups = [...server.queues.values()].flatMap((queue) =>
      [...queue.groups.values()].map((group) => groupFigures(queue, group)),
    )
    return { status: 200, body: { groups, cursor: null } }
  }
  const queue = server.queues.get(queueName)
  const group = queue?.groups.get(name)
  if (queue === undefined || group === undefined) return notFound(`consumer group "${name}"`)
  switch (`${method} ${verb ?? ''}`) {
    case 'GET ':
      return { status: 200, body: groupFigures(queue, group) }
    case 'DELETE ':
      queue.groups.delete(name)
      return { status: 200, body: { deleted: true } }
    case 'POST seek':
      queue.groups.delete(name)
      queue.group(name, body.toEnd === true ? 'new' : new Date(body.timestamp))
      server.wake()
      return { status: 200, body: { success: true, queue: queueName, consumerGroup: name } }
    default:
      return undefined
  }
}

/** Stored and shown, but not run: a test pushes what its schedule would. */
const schedules = new WeakMap<MemoryServer, Map<string, Body>>()

function scheduleRoute(
  server: MemoryServer,
  { method, path, body }: MemoryRequest,
): MemoryAnswer | undefined {
  const known = schedules.get(server) ?? new Map<string, Body>()
  schedules.set(server, known)
  const [, name] = path
  if (name === undefined) {
    return { status: 200, body: { schedules: [...known.values()], cursor: null } }
  }
  if (method === 'PUT') known.set(name, scheduleOf(server, name, body, known.get(name)))
  const schedule = known.get(name)
  if (schedule === undefined) return notFound(`schedule "${name}"`)
  if (method === 'DELETE') known.delete(name)
  return { status: 200, body: method === 'DELETE' ? { deleted: true } : schedule }
}

function scheduleOf(server: MemoryServer, name: string, body: Body, before: Body): Body {
  return {
    partition: null,
    timeZone: 'UTC',
    payload: null,
    headers: null,
    catchUp: 'last',
    paused: false,
    nextAt: null,
    lastAt: null,
    createdAt: before?.createdAt ?? new Date(server.nowMs).toISOString(),
    ...body,
    name,
  }
}

function notFound(what: string): MemoryAnswer {
  return problem(404, 'not_found', `there is no ${what}`)
}
