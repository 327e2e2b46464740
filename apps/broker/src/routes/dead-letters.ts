// Dead letters: list them with their history, count them by error, delete them permanently, or redrive them.
// A redrive delivers them again to their own group and partition, with attempts counted from zero.
import { randomUUID } from 'node:crypto'
import {
  type DeadLetterGroupsAnswer,
  fieldError,
  type PurgedLettersAnswer,
  parseConsumerGroup,
  parseDecimal,
  parsePartitionName,
  parseQueueName,
  parseTime,
  parseTransactionId,
  type Redrive,
  type RedriveBody,
  type RedrivePlan,
  RouseError,
  readEach,
  readFields,
  requestDefaults,
  transactionIdFor,
} from '@rouse/protocol'
import {
  cancelRedrive,
  countLetters,
  type DeadLetterRow,
  deadLetterGroups,
  deadLetters,
  findRedrive,
  type LetterFilter,
  purgeLetters,
  type RedriveRow,
  startRedrive,
} from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import { runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { readText } from '../http/page.ts'
import { requireFilter, shownTo } from '../http/redaction.ts'
import { dataOf, jsonList, jsonWith } from '../http/stored-json.ts'
import type { BrokerContext } from '../worker/context.ts'
import { toAttempt } from './message/groups.ts'

export type Query = Readonly<Record<string, unknown>>

export function deadLetterRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context

  app.get('/api/v1/dlq', async (request, reply) => {
    const query = request.query as Query
    const { where, ...page } = readFields({
      queue: () => optional(query.queue, parseQueueName),
      where: () => readFilter(query),
      limit: () => readNumber('limit', query, { min: 1, max: limits.pageSizeMax }),
      offset: () => readNumber('offset', query, { min: 0, max: Number.MAX_SAFE_INTEGER }),
    })
    const { consumerGroup: group, ids: _, ...others } = where
    const filter = { ...page, group, ...others }
    requireFilter(request.principal, page.queue, others.errorMessage !== undefined)
    const { letters, total } = await runAdminQuery(pool, (executor) =>
      deadLetters(executor, filter),
    )
    reply.type('application/json; charset=utf-8')
    return jsonList(
      'messages',
      letters.map((letter) =>
        shownTo(request.principal, letter.queue, letterText(letter, context)),
      ),
      { total },
    )
  })

  app.get('/api/v1/dlq/groups', (request) => countByError(request.query as Query, context))
  app.delete('/api/v1/dlq', (request) => purgeMatching(request, context))

  redriveRoutes(app, context, '/api/v1/dlq/redrive')
}

export async function countByError(
  query: Query,
  { pool, limits }: BrokerContext,
): Promise<DeadLetterGroupsAnswer> {
  const { limit = requestDefaults.pageSize, ...filter } = readFields({
    queue: () => optional(query.queue, parseQueueName),
    group: () => optional(query.consumerGroup, parseConsumerGroup),
    limit: () => readNumber('limit', query, { min: 1, max: limits.pageSizeMax }),
  })
  const groups = await runAdminQuery(pool, () => deadLetterGroups(pool, filter, limit))
  return {
    groups: groups.map((group) => ({
      ...group,
      firstFailedAt: group.firstFailedAt.toISOString(),
      lastFailedAt: group.lastFailedAt.toISOString(),
    })),
  }
}

export async function purgeMatching(
  request: FastifyRequest,
  { pool }: BrokerContext,
): Promise<PurgedLettersAnswer> {
  const query = request.query as Query
  // The queue is required here. Without it, a request would delete the dead letters of all queues.
  const { queue, where } = readFields({
    queue: () => parseQueueName(query.queue),
    where: () => readFilter(query),
  })
  requireFilter(request.principal, queue, where.errorMessage !== undefined)
  return { queue, deleted: await runAdminQuery(pool, () => purgeLetters(pool, queue, where)) }
}

/** Starts, shows and cancels redrives, under the given path. */
export function redriveRoutes(app: FastifyInstance, context: BrokerContext, path: string): void {
  const { pool, limits } = context

  app.post(
    path,
    {
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
      requireFilter(request.principal, queue, where.errorMessage !== undefined)
      if (dryRun) {
        const lanes = await runAdminQuery(pool, () => countLetters(pool, queue, where))
        return { dryRun, queue, total: lanes.reduce((sum, { count }) => sum + count, 0), lanes }
      }
      const redrive = { id: randomUUID(), queue, where, rate }
      const started = await runAdminQuery(pool, () => startRedrive(pool, redrive))
      context.requestDuePoll()
      reply.code(202).header('location', `${path}/${started.id}`)
      return toRedrive(started)
    },
  )

  app.get(`${path}/:id`, async (request): Promise<Redrive> => {
    const id = redriveIdOf(request)
    const found = (await runAdminQuery(pool, () => findRedrive(pool, id))) ?? noSuchRedrive(id)
    requireOnFound(request.principal, 'observe', found.queue, () => missingRedrive(id))
    return toRedrive(found)
  })

  app.delete(`${path}/:id`, async (request): Promise<Redrive> => {
    const id = redriveIdOf(request)
    const found = (await runAdminQuery(pool, () => findRedrive(pool, id))) ?? noSuchRedrive(id)
    requireOnFound(request.principal, 'manage', found.queue, () => missingRedrive(id))
    return toRedrive(
      (await runAdminQuery(pool, () => cancelRedrive(pool, id))) ?? noSuchRedrive(id),
    )
  })
}

/** `path` is the prefix of the field names in errors, such as `where.` for a body. */
export function readFilter(given: Query, path = ''): LetterFilter {
  type Parse = (value: unknown, field: string) => string
  const read = (field: string, parse: Parse) => () =>
    optional(given[field], (value) => parse(value, `${path}${field}`))
  return readFields({
    consumerGroup: read('consumerGroup', parseConsumerGroup),
    partition: read('partition', parsePartitionName),
    errorCode: read('errorCode', (text, field) => readText(field, text)),
    errorMessage: read('errorMessage', (text, field) => readText(field, text)),
    transactionId: read('transactionId', parseTransactionId),
    from: read('from', isoTime),
    to: read('to', isoTime),
  })
}

export function optional<Value>(
  value: unknown,
  parse: (value: unknown) => Value,
): Value | undefined {
  return value === undefined ? undefined : parse(value)
}

function isoTime(value: unknown, field: string): string {
  return new Date(parseTime(field, value)).toISOString()
}

export function readNumber(
  field: string,
  query: Query,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  return optional(query[field], (value) => parseDecimal(field, value, range))
}

/** A dead letter as JSON text. `changed` replaces fields. */
export function letterText(
  letter: DeadLetterRow,
  { cipher }: BrokerContext,
  changed: object = {},
): string {
  const { payload, headers, group, history, createdAt, failedAt, transactionId, ...fields } = letter
  const { queue, messageId: id } = letter
  const { data, more } = dataOf(cipher, { queue, id }, payload)
  return jsonWith(
    {
      ...fields,
      ...more,
      transactionId: transactionId ?? transactionIdFor(letter.partitionId, letter.seq),
      consumerGroup: group,
      retryCount: letter.attempts,
      createdAt: createdAt.toISOString(),
      failedAt: failedAt.toISOString(),
      history: history.map(toAttempt),
      ...changed,
    },
    { data, headers },
  )
}

export const idOfLetter = /^[1-9]\d{0,17}$/
export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function readWhere(where: NonNullable<RedriveBody['where']>, idsMax: number): LetterFilter {
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
    throw fieldError('invalid_request', 'where.ids', `must have at most ${idsMax} items`)
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

function missingRedrive(id: string): RouseError {
  return new RouseError('not_found', `there is no redrive "${id}"`)
}

function noSuchRedrive(id: string): never {
  throw missingRedrive(id)
}

function toRedrive({ startedAt, updatedAt, ...redrive }: RedriveRow): Redrive {
  return {
    ...redrive,
    startedAt: startedAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}
