// Redelivers dead letters to their own group and partition, with attempts counted from zero.
import { randomUUID } from 'node:crypto'
import {
  fieldError,
  parseQueueName,
  type Redrive,
  type RedriveBody,
  RedriveBodySchema,
  type RedrivePlan,
  RouseError,
  readEach,
  readFields,
} from '@rouse/protocol'
import {
  cancelRedrive,
  countLetters,
  findRedrive,
  type LetterFilter,
  type RedriveRow,
  startRedrive,
} from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { readFilter } from './dead-letters.ts'

export function redriveRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context

  app.post(
    '/api/v1/dlq/redrive',
    {
      schema: { body: bodySchema(RedriveBodySchema) },
      preValidation: async (request) => {
        withoutNulls((withoutNulls(request.body) as { where?: unknown } | undefined)?.where)
      },
    },
    async (request, reply): Promise<Redrive | RedrivePlan> => {
      const { rate, dryRun = false, where: given = {}, ...body } = request.body as RedriveBody
      const { queue, where } = readFields({
        queue: () => parseQueueName(body.queue),
        where: () => readWhere(given, limits.pageSizeMax),
      })
      if (dryRun) {
        const lanes = await runAdminQuery(pool, () => countLetters(pool, queue, where))
        return { dryRun, queue, total: lanes.reduce((sum, { count }) => sum + count, 0), lanes }
      }
      const redrive = { id: randomUUID(), queue, where, rate }
      const started = await runAdminQuery(pool, () => startRedrive(pool, redrive))
      context.requestDuePoll()
      reply.code(202).header('location', `/api/v1/dlq/redrive/${started.id}`)
      return toRedrive(started)
    },
  )

  app.get('/api/v1/dlq/redrive/:id', async (request): Promise<Redrive> => {
    const id = redriveIdOf(request)
    return toRedrive((await runAdminQuery(pool, () => findRedrive(pool, id))) ?? noSuchRedrive(id))
  })

  app.delete('/api/v1/dlq/redrive/:id', async (request): Promise<Redrive> => {
    const id = redriveIdOf(request)
    return toRedrive(
      (await runAdminQuery(pool, () => cancelRedrive(pool, id))) ?? noSuchRedrive(id),
    )
  })
}

const idOfLetter = /^[1-9]\d{0,17}$/
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const conditions: ReadonlySet<string> = new Set([
  'consumerGroup',
  'partition',
  'errorCode',
  'errorMessage',
  'transactionId',
  'ids',
])

function readWhere(where: NonNullable<RedriveBody['where']>, idsMax: number): LetterFilter {
  const unknown = Object.keys(where).find((name) => !conditions.has(name))
  // Ignoring a condition would redrive more than intended.
  if (unknown !== undefined) {
    throw fieldError('invalid_request', `where.${unknown}`, 'is an unknown condition')
  }
  const { filter, ids } = readFields({
    filter: () => readFilter(where, 'where.'),
    ids: () => readIds(where.ids, idsMax),
  })
  return { ...filter, ids }
}

function readIds(
  ids: readonly string[] | undefined,
  idsMax: number,
): readonly string[] | undefined {
  if (ids === undefined) return undefined
  if (ids.length > idsMax) {
    throw fieldError('invalid_request', 'where.ids', `must be at most ${idsMax}`)
  }
  return readEach(ids, (id, i) => {
    const known = id.toLowerCase()
    if (idOfLetter.test(known) || uuid.test(known)) return known
    throw fieldError(
      'invalid_request',
      `where.ids[${i}]`,
      'must be the id of a dead letter or a message',
    )
  })
}

function redriveIdOf(request: FastifyRequest): string {
  const id = (request.params as { readonly id: string }).id.toLowerCase()
  return uuid.test(id) ? id : noSuchRedrive(id)
}

function noSuchRedrive(id: string): never {
  throw new RouseError('not_found', `there is no redrive "${id}"`)
}

function toRedrive({ startedAt, updatedAt, ...redrive }: RedriveRow): Redrive {
  return {
    ...redrive,
    startedAt: startedAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}
