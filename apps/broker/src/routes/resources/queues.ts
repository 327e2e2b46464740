// Queues as resources: their figures, and their options as a whole.
import {
  type ConfigureBody,
  type DeletedAnswer,
  parseQueueName,
  type QueueFigures,
  type QueueSettingsBody,
} from '@rouse/protocol'
import {
  figuresOf,
  figuresOfMatching,
  patchQueue,
  replaceQueue,
  type QueueFigures as StoredFigures,
} from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Principal } from '../../auth/principal.ts'
import {
  createQueueActivity,
  noRate,
  type QueueActivity,
  waitingFor,
} from '../../cluster/queue-activity.ts'
import { noSuchQueue, runAdminQuery } from '../../http/admin-query.ts'
import { withoutNulls } from '../../http/json-body.ts'
import { cursorAfter, readPage } from '../../http/page.ts'
import { ListBodies } from '../../observe/list-bodies.ts'
import { type ListedQueue, pageOf, type QueueSnapshot } from '../../observe/queue-list.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { applyConfigure, readQueueFilter, removeQueue } from '../queues.ts'

export function queueResourceRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits, clock, queueList } = context
  const readActivity = createQueueActivity(context)
  const bodies = new ListBodies()

  app.get('/api/v1/queues', async (request, reply) => {
    const page = readPage(request.query, limits, limits.queuesPerPageMax)
    const filter = {
      ...readQueueFilter(request.query as Readonly<Record<string, unknown>>),
      visible: request.principal.grants.visible('observe'),
    }
    const wanted = { ...page, ...filter }
    const { principal } = request
    const [snapshot, activity] = await Promise.all([find(wanted), readActivity()])
    const kind = JSON.stringify([wanted, principal.grants.visible('peek')])
    const body = bodies.of(snapshot, activity, kind, () => {
      const found = snapshot.isPage === true ? snapshot.queues : pageOf(snapshot.queues, wanted)
      const names = found.map(({ figures }) => figures.queue)
      const texts = found.map((one) => withActivity(listedFor(principal, one), activity))
      const asOf = new Date(clock.wallMs() - (clock.nowMs() - snapshot.atMs)).toISOString()
      const cursor = JSON.stringify(cursorAfter(names, page))
      // Not left to Fastify: 10,000 queues are a few megabytes, and the JSON of most of them is kept.
      return Buffer.from(`{"queues":[${texts.join(',')}],"asOf":"${asOf}","cursor":${cursor}}`)
    })
    return reply.type('application/json; charset=utf-8').send(body)
  })

  async function find(filter: Parameters<typeof pageOf>[1]): Promise<QueueSnapshot> {
    const kept = queueList.kept()
    if (kept !== undefined) return kept
    // A page that may contain all queues reads all of them at once, and the list keeps the result.
    if (filter.limit > limits.pageSizeMax) return queueList.all()
    const startedAtMs = clock.nowMs()
    const figures = await runAdminQuery(pool, () => figuresOfMatching(pool, filter))
    queueList.tookMs(clock.nowMs() - startedAtMs)
    const queues = figures.map((one): ListedQueue => ({ figures: one, json: stableJson(one) }))
    return { queues, atMs: startedAtMs, isPage: true }
  }

  app.get('/api/v1/queues/:queue', (request) => show(queueOf(request), request.principal))

  const preValidation = async (request: FastifyRequest) => {
    request.body ??= {}
    withoutNulls(request.body)
  }

  app.put('/api/v1/queues/:queue', { preValidation }, async (request) => {
    const body = settingsOf(request)
    await applyConfigure(request, body, replaceQueue, context)
    return show(body.queue, request.principal)
  })

  app.patch('/api/v1/queues/:queue', { preValidation }, async (request) => {
    const body = settingsOf(request)
    await applyConfigure(request, body, patchQueue, context)
    return show(body.queue, request.principal)
  })

  app.delete('/api/v1/queues/:queue', (request): Promise<DeletedAnswer> => {
    return removeQueue(request, queueOf(request), context)
  })

  async function show(queue: string, principal: Principal): Promise<QueueFigures> {
    const [stored, activity] = await Promise.all([
      runAdminQuery(pool, () => figuresOf(pool, queue)),
      readActivity(),
    ])
    if (stored === undefined) throw noSuchQueue(queue)
    const figures = figuresFor(principal, stored)
    return { ...stableFigures(figures), ...activeFigures(figures, activity) }
  }
}

function listedFor(principal: Principal, listed: ListedQueue): ListedQueue {
  const figures = figuresFor(principal, listed.figures)
  return figures === listed.figures ? listed : { figures, json: stableJson(figures) }
}

/** The error of a held message is content, which needs `peek`. */
function figuresFor({ grants }: Principal, figures: StoredFigures): StoredFigures {
  if (figures.heldError === null || grants.covers('peek', figures.queue)) return figures
  return { ...figures, heldError: null }
}

function queueOf(request: FastifyRequest): string {
  return parseQueueName((request.params as { readonly queue: string }).queue)
}

function settingsOf(request: FastifyRequest): ConfigureBody {
  return { ...(request.body as QueueSettingsBody), queue: queueOf(request) }
}

type ActiveFigures = Pick<
  QueueFigures,
  'consumers' | 'pushedPerSecond' | 'completedPerSecond' | 'oldestAgeMs' | 'state'
>

/** The figures that stay the same until the queue changes in the database. */
function stableFigures(stored: StoredFigures): Omit<QueueFigures, keyof ActiveFigures> {
  const { pops: _, oldestAgeMs: __, heldUntil, heldError, createdAt, options, ...figures } = stored
  const held =
    heldUntil === null ? null : { until: heldUntil.toISOString(), errorMessage: heldError }
  return {
    ...figures,
    options: JSON.parse(options) as Record<string, unknown>,
    createdAt: createdAt.toISOString(),
    held,
  }
}

/** `stableFigures` as JSON. */
export function stableJson(stored: StoredFigures): string {
  const { options: _, ...figures } = stableFigures({ ...stored, options: '{}' })
  return `${JSON.stringify(figures).slice(0, -1)},"options":${stored.options}}`
}

function activeFigures(stored: StoredFigures, activity: QueueActivity): ActiveFigures {
  const { waiting, rates } = activity
  const consumers = stored.pops + waitingFor(waiting, stored)
  const { pushedPerSecond, completedPerSecond } = rates.get(stored.queue) ?? noRate
  return {
    consumers,
    pushedPerSecond,
    completedPerSecond,
    oldestAgeMs: stored.oldestAgeMs,
    state: stateOf(stored, activity),
  }
}

/** The JSON of a queue. That of an unused queue is kept with its figures. */
function withActivity(listed: ListedQueue, activity: QueueActivity): string {
  const { figures, json } = listed
  const isIdle = !activity.rates.has(figures.queue) && waitingFor(activity.waiting, figures) === 0
  if (!isIdle) return added(json, activeFigures(figures, activity))
  listed.idle ??= added(json, activeFigures(figures, noActivity))
  return listed.idle
}

const noActivity: QueueActivity = { waiting: {}, rates: new Map() }

/** Adds the fields to an object that is JSON already. */
function added(json: string, active: ActiveFigures): string {
  return `${json.slice(0, -1)},${JSON.stringify(active).slice(1)}`
}

export function stateOf(
  figures: StoredFigures,
  { waiting, rates }: QueueActivity,
): QueueFigures['state'] {
  if (figures.paused) return 'paused'
  if (figures.heldUntil !== null) return 'held'
  const hasWork = figures.ready + figures.retrying + figures.leased > 0
  // Between two requests, a consumer neither waits nor holds messages.
  const isConsumed = (rates.get(figures.queue) ?? noRate).completedPerSecond > 0
  const consumers = figures.pops + waitingFor(waiting, figures)
  return hasWork && consumers === 0 && !isConsumed ? 'no_consumers' : 'ok'
}
