// Lists and shows messages without leasing them.
import {
  type FailedAttempt,
  fieldError,
  messageStatuses,
  parseBoolean,
  parseChoice,
  parseConsumerGroup,
  parseDecimal,
  parsePartitionName,
  parseQueueName,
  parseTransactionId,
  RouseError,
  readFields,
  requestDefaults,
  transactionIdFor,
} from '@rouse/protocol'
import {
  type FailedAttemptRow,
  findMessage,
  followMessages,
  listMessages,
  listScheduled,
  type MessageFilter,
  type MessageInGroup,
  type Moment,
  type Place,
  type StoredMessage,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import { dataOf, jsonList, jsonWith } from '../http/stored-json.ts'
import type { BrokerContext } from '../worker/context.ts'

type Query = Readonly<Record<string, unknown>>
type Params = { readonly partitionId: string; readonly transactionId: string }

export function messageRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.get('/api/v1/messages', async (request, reply) => {
    const query = request.query as Query
    const { filter, isFollowing } = readFields({
      filter: () => readFilter(query, context.limits.pageSizeMax),
      isFollowing: () => query.follow !== undefined && parseBoolean('follow', query.follow),
    })
    const page = isFollowing
      ? await follow(filter, query.cursor, context)
      : await list(filter, query.cursor, context)
    const texts = page.messages.map((message) => messageText(message, filter.queue, context))
    reply.type('application/json; charset=utf-8')
    return jsonList('messages', texts, { cursor: page.cursor })
  })

  app.get('/api/v1/messages/:partitionId/:transactionId', async (request, reply) => {
    const { partitionId, transactionId } = request.params as Params
    const key = parseTransactionId(transactionId)
    const found = isPartitionId(partitionId)
      ? await runAdminQuery(context.pool, () => findMessage(context.pool, partitionId, key))
      : undefined
    if (found === undefined) {
      throw new RouseError('not_found', `there is no message "${key}" in partition ${partitionId}`)
    }
    const { queue, groups, ...message } = found
    reply.type('application/json; charset=utf-8')
    return messageText(message, queue, context, { groups: groups.map(toGroup) })
  })
}

/** Accepts up to 18 digits. The largest bigint has 19, but no partition id gets that large. */
export function isPartitionId(text: string): boolean {
  return /^[1-9]\d{0,17}$/.test(text)
}

function readFilter(query: Query, limitMax: number): MessageFilter {
  const { partition, consumerGroup, status, limit } = query
  return readFields({
    queue: () => parseQueueName(query.queue),
    partition: () => (partition === undefined ? undefined : parsePartitionName(partition)),
    group: () =>
      consumerGroup === undefined
        ? requestDefaults.consumerGroup
        : parseConsumerGroup(consumerGroup),
    status: () =>
      status === undefined ? undefined : parseChoice('status', status, messageStatuses),
    limit: () =>
      limit === undefined
        ? requestDefaults.pageSize
        : parseDecimal('limit', limit, { min: 1, max: limitMax }),
  })
}

interface Page {
  readonly messages: readonly StoredMessage[]
  readonly cursor: string | null
}

/** Lists messages in the log first, then scheduled messages. */
async function list(filter: MessageFilter, cursor: unknown, context: BrokerContext): Promise<Page> {
  const { pool } = context
  const start = readCursor(cursor, /^(log)-(\d{1,18})-(\d{1,18})$|^(scheduled)-(\d{1,18})$/)
  let scheduledAfter = start?.[5]
  const messages: StoredMessage[] = []
  if (scheduledAfter === undefined && filter.status !== 'scheduled') {
    const after: Place = { partitionId: start?.[2] ?? '0', seq: start?.[3] ?? '0' }
    const page = await runAdminQuery(pool, () => listMessages(pool, filter, after))
    if (page.next !== undefined) {
      const { partitionId, seq } = page.next
      return { messages: page.messages, cursor: `log-${partitionId}-${seq}` }
    }
    messages.push(...page.messages)
    if (filter.status !== undefined) return { messages, cursor: null }
    if (messages.length === filter.limit) return { messages, cursor: 'scheduled-0' }
  }
  scheduledAfter ??= '0'
  const rest = { ...filter, limit: filter.limit - messages.length }
  const page = await runAdminQuery(pool, () => listScheduled(pool, rest, scheduledAfter))
  const next = page.next === undefined ? null : `scheduled-${page.next}`
  return { messages: [...messages, ...page.messages], cursor: next }
}

async function follow(
  filter: MessageFilter,
  cursor: unknown,
  { pool }: BrokerContext,
): Promise<Page> {
  const start = readCursor(cursor, /^end$|^at-(\d{1,16})-(\d{1,18})-(\d{1,18})$/)
  const [, micros = '0', partitionId = '0', seq = '0'] = start ?? []
  const after: Moment | undefined = start?.[0] === 'end' ? undefined : { micros, partitionId, seq }
  const { messages, next } = await runAdminQuery(pool, () => followMessages(pool, filter, after))
  return { messages, cursor: `at-${next.micros}-${next.partitionId}-${next.seq}` }
}

function readCursor(cursor: unknown, form: RegExp): RegExpExecArray | undefined {
  if (cursor === undefined) return undefined
  const parts = typeof cursor === 'string' ? form.exec(cursor) : null
  if (parts === null) throw fieldError('invalid_request', 'cursor', 'is not a valid cursor')
  return parts
}

function messageText(
  message: StoredMessage,
  queue: string,
  { cipher }: BrokerContext,
  more: object = {},
): string {
  const { payload, headers, createdAt, dueAt, transactionId, ...fields } = message
  const opened = dataOf(cipher, { queue, id: message.id }, payload)
  return jsonWith(
    {
      ...fields,
      ...opened.more,
      transactionId: transactionId ?? generatedId(message),
      queue,
      createdAt: createdAt.toISOString(),
      dueAt: dueAt?.toISOString() ?? null,
      ...more,
    },
    { data: opened.data, headers },
  )
}

function generatedId({ partitionId, seq, id }: StoredMessage): string {
  return partitionId === null || seq === null ? id : transactionIdFor(partitionId, seq)
}

function toGroup({ leaseExpiresAt, nextTryAt, history, ...group }: MessageInGroup): object {
  return {
    ...group,
    leaseExpiresAt: leaseExpiresAt === null ? null : new Date(leaseExpiresAt).toISOString(),
    nextTryAt: nextTryAt === null ? null : new Date(nextTryAt).toISOString(),
    history: history.map(toAttempt),
  }
}

/** A failed attempt, as the API shows it. */
export function toAttempt(attempt: FailedAttemptRow): FailedAttempt {
  return {
    ...attempt,
    deliveredAt: attempt.deliveredAt === null ? null : new Date(attempt.deliveredAt).toISOString(),
    endedAt: new Date(attempt.endedAt).toISOString(),
  }
}
