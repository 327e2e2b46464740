// Messages that were given up: listed with their history, counted by error, removed for good.
import {
  type DeadLetterGroupsAnswer,
  fieldError,
  type PurgedLettersAnswer,
  parseConsumerGroup,
  parseDecimal,
  parsePartitionName,
  parseQueueName,
  parseTransactionId,
  requestDefaults,
  transactionIdFor,
} from '@rouse/protocol'
import { type DeadLetter, deadLetters } from '@rouse/sidecar'
import type { FastifyInstance } from 'fastify'
import { administer } from '../administration.ts'
import { toAttempt } from '../attempt-answer.ts'
import type { BrokerContext } from '../broker-context.ts'
import { deadLetterGroups, type LetterFilter, purgeLetters } from '../statements/dead-letters.ts'
import { dataOf, jsonList, jsonWith } from '../stored-json.ts'

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
    return jsonList(
      'messages',
      letters.map((letter) => letterText(letter, context)),
      { total },
    )
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
}

export function readFilter(given: Query): LetterFilter {
  return {
    consumerGroup: optional(given.consumerGroup, parseConsumerGroup),
    partition: optional(given.partition, parsePartitionName),
    errorCode: optional(given.errorCode, (value) => readText('errorCode', value)),
    errorMessage: optional(given.errorMessage, (value) => readText('errorMessage', value)),
    transactionId: optional(given.transactionId, parseTransactionId),
  }
}

function optional<Value>(value: unknown, parse: (value: unknown) => Value): Value | undefined {
  return value === undefined ? undefined : parse(value)
}

function readText(field: string, value: unknown): string {
  if (typeof value === 'string' && !value.includes('\u0000')) return value
  throw fieldError('invalid_request', field, 'must be a text without U+0000')
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
