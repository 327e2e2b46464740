// Queues as resources: their figures, and their options as a whole.
import {
  type ConfigureBody,
  type DeletedAnswer,
  parseQueueName,
  type QueueFigures,
  type QueueFiguresAnswer,
  type QueueSettingsBody,
} from '@rouse/protocol'
import {
  figuresOf,
  figuresOfMatching,
  patchQueue,
  queueOptions,
  replaceQueue,
  type QueueFigures as StoredFigures,
} from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  createQueueActivity,
  type WaitingByQueue,
  waitingFor,
} from '../../cluster/queue-activity.ts'
import { noSuchQueue, runAdminQuery } from '../../http/admin-query.ts'
import { withoutNulls } from '../../http/json-body.ts'
import { cursorAfter, readPage } from '../../http/page.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { applyConfigure, readQueueFilter, removeQueue } from '../queues.ts'

export function queueResourceRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context
  const readActivity = createQueueActivity(context)

  app.get('/api/v1/queues', async (request): Promise<QueueFiguresAnswer> => {
    const page = readPage(request.query, limits)
    const filter = {
      ...readQueueFilter(request.query as Readonly<Record<string, unknown>>),
      visible: request.principal.grants.visible('observe'),
    }
    const [queues, waiting] = await Promise.all([
      runAdminQuery(pool, () => figuresOfMatching(pool, { ...page, ...filter })),
      readActivity(),
    ])
    const names = queues.map(({ queue }) => queue)
    return {
      queues: queues.map((figures) => toFigures(figures, waiting)),
      cursor: cursorAfter(names, page),
    }
  })

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
    const [figures, options, waiting] = await Promise.all([
      runAdminQuery(pool, () => figuresOf(pool, queue)),
      runAdminQuery(pool, () => queueOptions(pool, queue)),
      readActivity(),
    ])
    if (figures === undefined || options === undefined) throw noSuchQueue(queue)
    return { ...toFigures(figures, waiting), options }
  }
}

function queueOf(request: FastifyRequest): string {
  return parseQueueName((request.params as { readonly queue: string }).queue)
}

function settingsOf(request: FastifyRequest): ConfigureBody {
  return { ...(request.body as QueueSettingsBody), queue: queueOf(request) }
}

function toFigures(stored: StoredFigures, waitingByQueue: WaitingByQueue): QueueFigures {
  const { pops, heldUntil, heldError, createdAt, ...figures } = stored
  const consumers = pops + waitingFor(waitingByQueue, stored)
  const held =
    heldUntil === null ? null : { until: heldUntil.toISOString(), errorMessage: heldError }
  return {
    ...figures,
    createdAt: createdAt.toISOString(),
    consumers,
    held,
    state: stateOf(stored, consumers),
  }
}

function stateOf(figures: StoredFigures, consumers: number): QueueFigures['state'] {
  if (figures.paused) return 'paused'
  if (figures.heldUntil !== null) return 'held'
  const hasWork = figures.ready + figures.retrying + figures.leased > 0
  return hasWork && consumers === 0 ? 'no_consumers' : 'ok'
}
