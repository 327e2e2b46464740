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
import {
  createQueueActivity,
  noRate,
  type QueueActivity,
  waitingFor,
} from '../../cluster/queue-activity.ts'
import { noSuchQueue, runAdminQuery } from '../../http/admin-query.ts'
import { withoutNulls } from '../../http/json-body.ts'
import { cursorAfter, readPage } from '../../http/page.ts'
import { type ListedQueue, pageOf, type QueueSnapshot } from '../../observe/queue-list.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { applyConfigure, readQueueFilter, removeQueue } from '../queues.ts'

export function queueResourceRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits, clock, queueList } = context
  const readActivity = createQueueActivity(context)

  app.get('/api/v1/queues', async (request, reply) => {
    const page = readPage(request.query, limits, limits.queuesPerPageMax)
    const filter = {
      ...readQueueFilter(request.query as Readonly<Record<string, unknown>>),
      visible: request.principal.grants.visible('observe'),
    }
    const [found, activity] = await Promise.all([find({ ...page, ...filter }), readActivity()])
    const ageMs = clock.nowMs() - found.atMs
    const names = found.queues.map(({ figures }) => figures.queue)
    const queues = found.queues.map(({ figures, json }) => {
      return withActivity(json, activeFigures(figures, activity, ageMs))
    })
    const asOf = new Date(clock.wallMs() - ageMs).toISOString()
    const cursor = JSON.stringify(cursorAfter(names, page))
    // Written here, because 10,000 queues are a few megabytes, and most of them do not change.
    return reply
      .type('application/json; charset=utf-8')
      .send(`{"queues":[${queues.join(',')}],"asOf":"${asOf}","cursor":${cursor}}`)
  })

  async function find(filter: Parameters<typeof pageOf>[1]): Promise<QueueSnapshot> {
    const kept = queueList.kept()
    if (kept !== undefined) return { queues: pageOf(kept.queues, filter), atMs: kept.atMs }
    const startedAtMs = clock.nowMs()
    const figures = await runAdminQuery(pool, () => figuresOfMatching(pool, filter))
    queueList.tookMs(clock.nowMs() - startedAtMs)
    const queues = figures.map((one): ListedQueue => ({ figures: one, json: stableJson(one) }))
    return { queues, atMs: startedAtMs }
  }

  app.get('/api/v1/queues/:queue', (request) => show(queueOf(request)))

  const preValidation = async (request: FastifyRequest) => {
    request.body ??= {}
    withoutNulls(request.body)
  }

  app.put('/api/v1/queues/:queue', { preValidation }, async (request) => {
    const body = settingsOf(request)
    await applyConfigure(body, replaceQueue, context)
    return show(body.queue)
  })

  app.patch('/api/v1/queues/:queue', { preValidation }, async (request) => {
    const body = settingsOf(request)
    await applyConfigure(body, patchQueue, context)
    return show(body.queue)
  })

  app.delete('/api/v1/queues/:queue', (request): Promise<DeletedAnswer> => {
    return removeQueue(queueOf(request), context)
  })

  async function show(queue: string): Promise<QueueFigures> {
    const [figures, activity] = await Promise.all([
      runAdminQuery(pool, () => figuresOf(pool, queue)),
      readActivity(),
    ])
    if (figures === undefined) throw noSuchQueue(queue)
    return { ...stableFigures(figures), ...activeFigures(figures, activity, 0) }
  }
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

/** `ageMs`: how long ago the figures were read. */
function activeFigures(
  stored: StoredFigures,
  { waiting, rates }: QueueActivity,
  ageMs: number,
): ActiveFigures {
  const consumers = stored.pops + waitingFor(waiting, stored)
  const { pushedPerSecond, completedPerSecond } = rates.get(stored.queue) ?? noRate
  const { oldestAgeMs } = stored
  return {
    consumers,
    pushedPerSecond,
    completedPerSecond,
    oldestAgeMs: oldestAgeMs === null ? null : oldestAgeMs + Math.round(ageMs),
    state: stateOf(stored, consumers),
  }
}

/** Adds the fields to an object that is JSON already. */
function withActivity(json: string, active: ActiveFigures): string {
  return `${json.slice(0, -1)},${JSON.stringify(active).slice(1)}`
}

function stateOf(figures: StoredFigures, consumers: number): QueueFigures['state'] {
  if (figures.paused) return 'paused'
  if (figures.heldUntil !== null) return 'held'
  const hasWork = figures.ready + figures.retrying + figures.leased > 0
  return hasWork && consumers === 0 ? 'no_consumers' : 'ok'
}
