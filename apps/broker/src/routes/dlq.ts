// Messages that were given up: listed with their history, delivered again, or removed for good.
import { randomUUID } from 'node:crypto'
import {
  type DeadLetterGroupsAnswer,
  fieldError,
  type PurgedLettersAnswer,
  parseConsumerGroup,
  parseDecimal,
  parsePartitionName,
  parseQueueName,
  type Redrive,
  type RedriveBody,
  RedriveBodySchema,
  type RedrivePlan,
  RouseError,
  requestDefaults,
  transactionIdFor,
} from '@rouse/protocol'
import { type DeadLetter, deadLetters } from '@rouse/sidecar'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { administer } from '../administration.ts'
import { toAttempt } from '../attempt-answer.ts'
import type { BrokerContext } from '../broker-context.ts'
import { withoutNulls } from '../json-body.ts'
import { bodySchema } from '../request-schema.ts'
import {
  cancelRedrive,
  countLetters,
  deadLetterGroups,
  findRedrive,
  type LetterFilter,
  purgeLetters,
  type RedriveRow,
  startRedrive,
} from '../statements/dead-letters.ts'
import { jsonList, jsonWith } from '../stored-json.ts'

type Query = Readonly<Record<string, unknown>>

export function dlqRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context

  app.get('/api/v1/dlq', async (request, reply) => {
    const query = request.query as Query
    const { consumerGroup: group, ids: _, ...others } = readFilter(query)
    const filter = {
      queue: optional(query.queue, parseQueueName),
      group,
      ...others,
      limit: readNumber('limit', query, { min: 1, max: limits.pageSizeMax }),
      offset: readNumber('offset', query, { min: 0, max: Number.MAX_SAFE_INTEGER }),
    }
    const { letters, total } = await administer(pool, (executor) => deadLetters(executor, filter))
    reply.type('application/json; charset=utf-8')
    return jsonList('messages', letters.map(letterText), { total })
  })

  app.get('/api/v1/dlq/groups', async (request): Promise<DeadLetterGroupsAnswer> => {
    const query = request.query as Query
    const filter = {
      queue: optional(query.queue, parseQueueName),
      group: optional(query.consumerGroup, parseConsumerGroup),
    }
    const limit =
      readNumber('limit', query, { min: 1, max: limits.pageSizeMax }) ?? requestDefaults.pageSize
    const groups = await administer(pool, () => deadLetterGroups(pool, filter, limit))
    return {
      groups: groups.map((group) => ({
        ...group,
        firstFailedAt: group.firstFailedAt.toISOString(),
        lastFailedAt: group.lastFailedAt.toISOString(),
      })),
    }
  })

  app.delete('/api/v1/dlq', async (request): Promise<PurgedLettersAnswer> => {
    const query = request.query as Query
    // Not optional here: whoever forgets it would remove the letters of all queues.
    const queue = parseQueueName(query.queue)
    const where = readFilter(query)
    return { queue, deleted: await administer(pool, () => purgeLetters(pool, queue, where)) }
  })

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
      const queue = parseQueueName(body.queue)
      const where = { ...readFilter(given), ids: readIds(given.ids, limits.pageSizeMax) }
      if (dryRun) {
        const lanes = await administer(pool, () => countLetters(pool, queue, where))
        return { dryRun, queue, total: lanes.reduce((sum, { count }) => sum + count, 0), lanes }
      }
      const redrive = { id: randomUUID(), queue, where, rate }
      const started = await administer(pool, () => startRedrive(pool, redrive))
      context.lookForDue()
      reply.code(202).header('location', `/api/v1/dlq/redrive/${started.id}`)
      return toRedrive(started)
    },
  )

  app.get('/api/v1/dlq/redrive/:id', async (request): Promise<Redrive> => {
    const id = redriveIdOf(request)
    return toRedrive((await administer(pool, () => findRedrive(pool, id))) ?? noSuchRedrive(id))
  })

  app.delete('/api/v1/dlq/redrive/:id', async (request): Promise<Redrive> => {
    const id = redriveIdOf(request)
    return toRedrive((await administer(pool, () => cancelRedrive(pool, id))) ?? noSuchRedrive(id))
  })
}

function readFilter(given: Query): LetterFilter {
  return {
    consumerGroup: optional(given.consumerGroup, parseConsumerGroup),
    partition: optional(given.partition, parsePartitionName),
    errorCode: optional(given.errorCode, (value) => readText('errorCode', value)),
    errorMessage: optional(given.errorMessage, (value) => readText('errorMessage', value)),
  }
}

function optional<Value>(value: unknown, parse: (value: unknown) => Value): Value | undefined {
  return value === undefined ? undefined : parse(value)
}

function readText(field: string, value: unknown): string {
  if (typeof value === 'string' && !value.includes('\u0000')) return value
  throw fieldError('invalid_request', field, 'must be a text without U+0000')
}

const idOfLetter = /^[1-9]\d{0,17}$/
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function readIds(
  ids: readonly string[] | undefined,
  idsMax: number,
): readonly string[] | undefined {
  if (ids === undefined) return undefined
  if (ids.length > idsMax) {
    throw fieldError('invalid_request', 'where.ids', `must be at most ${idsMax}`)
  }
  return ids.map((id, i) => {
    const known = id.toLowerCase()
    if (idOfLetter.test(known) || uuid.test(known)) return known
    throw fieldError(
      'invalid_request',
      `where.ids[${i}]`,
      'must be the id of a letter or a message',
    )
  })
}

function readNumber(
  field: string,
  query: Query,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  return optional(query[field], (value) => parseDecimal(field, value, range))
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

function letterText(letter: DeadLetter): string {
  const { payload, headers, group, history, createdAt, failedAt, transactionId, ...fields } = letter
  return jsonWith(
    {
      ...fields,
      transactionId: transactionId ?? transactionIdFor(letter.partitionId, letter.seq),
      consumerGroup: group,
      createdAt: createdAt.toISOString(),
      failedAt: failedAt.toISOString(),
      history: history.map(toAttempt),
    },
    { data: payload, headers },
  )
}
