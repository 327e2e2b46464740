// Dead letters: list them with their history, count them by error, delete them permanently.
import {
  type DeadLetterGroupsAnswer,
  fieldError,
  type PurgedLettersAnswer,
  parseConsumerGroup,
  parseDecimal,
  parsePartitionName,
  parseQueueName,
  parseTransactionId,
  readFields,
  requestDefaults,
  transactionIdFor,
} from '@rouse/protocol'
import {
  type DeadLetter,
  deadLetterGroups,
  deadLetters,
  type LetterFilter,
  purgeLetters,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import { dataOf, jsonList, jsonWith } from '../http/stored-json.ts'
import type { BrokerContext } from '../worker/context.ts'
import { toAttempt } from './attempt-answer.ts'

type Query = Readonly<Record<string, unknown>>

export function dlqRoutes(app: FastifyInstance, context: BrokerContext): void {
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
    const { letters, total } = await runAdminQuery(pool, (executor) =>
      deadLetters(executor, filter),
    )
    reply.type('application/json; charset=utf-8')
    return jsonList(
      'messages',
      letters.map((letter) => letterText(letter, context)),
      { total },
    )
  })

  app.get('/api/v1/dlq/groups', async (request): Promise<DeadLetterGroupsAnswer> => {
    const query = request.query as Query
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
  })

  app.delete('/api/v1/dlq', async (request): Promise<PurgedLettersAnswer> => {
    const query = request.query as Query
    // Required here: a caller that forgets it would delete the letters of all queues.
    const { queue, where } = readFields({
      queue: () => parseQueueName(query.queue),
      where: () => readFilter(query),
    })
    return { queue, deleted: await runAdminQuery(pool, () => purgeLetters(pool, queue, where)) }
  })
}

/** `path` is the position of the conditions in a body. */
export function readFilter(given: Query, path = ''): LetterFilter {
  type Parse = (value: unknown, field: string) => string
  const read = (field: string, parse: Parse) => () =>
    optional(given[field], (value) => parse(value, `${path}${field}`))
  return readFields({
    consumerGroup: read('consumerGroup', parseConsumerGroup),
    partition: read('partition', parsePartitionName),
    errorCode: read('errorCode', readText),
    errorMessage: read('errorMessage', readText),
    transactionId: read('transactionId', parseTransactionId),
  })
}

function optional<Value>(value: unknown, parse: (value: unknown) => Value): Value | undefined {
  return value === undefined ? undefined : parse(value)
}

function readText(value: unknown, field: string): string {
  if (typeof value === 'string' && !value.includes('\u0000')) return value
  throw fieldError('invalid_request', field, 'must be a string without U+0000')
}

function readNumber(
  field: string,
  query: Query,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  return optional(query[field], (value) => parseDecimal(field, value, range))
}

function letterText(letter: DeadLetter, { cipher }: BrokerContext): string {
  const { payload, headers, group, history, createdAt, failedAt, transactionId, ...fields } = letter
  const { queue, messageId: id } = letter
  const { data, more } = dataOf(cipher, { queue, id }, payload)
  return jsonWith(
    {
      ...fields,
      ...more,
      transactionId: transactionId ?? transactionIdFor(letter.partitionId, letter.seq),
      consumerGroup: group,
      createdAt: createdAt.toISOString(),
      failedAt: failedAt.toISOString(),
      history: history.map(toAttempt),
    },
    { data, headers },
  )
}
