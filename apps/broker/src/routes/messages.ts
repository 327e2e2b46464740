// Lists and shows messages without leasing them.
import {
  type FailedAttempt,
  fieldError,
  isPartitionId,
  messageStatusAliases,
  messageStatuses,
  parseBoolean,
  parseChoice,
  parseConsumerGroup,
  parseDecimal,
  parseNamespace,
  parsePartitionName,
  parseQueueName,
  parseTask,
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
  queuePlace,
  type StoredMessage,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import { runAdminQuery } from '../http/admin-query.ts'
import { readTime } from '../http/page.ts'
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
      : await listMatching(filter, query, context)
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
    const missing = () =>
      new RouseError('not_found', `there is no message "${key}" in partition ${partitionId}`)
    if (found === undefined) throw missing()
    const { queue, groups, ...message } = found
    requireOnFound(request.principal, 'peek', queue, missing)
    reply.type('application/json; charset=utf-8')
    return messageText(message, queue, context, { groups: groups.map(toGroup) })
  })
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
      status === undefined
        ? undefined
        : parseChoice('status', withoutAlias(status), messageStatuses),
    limit: () =>
      limit === undefined
        ? requestDefaults.pageSize
        : parseDecimal('limit', limit, { min: 1, max: limitMax }),
  })
}

function withoutAlias(status: unknown): unknown {
  const aliases: Readonly<Record<string, string>> = messageStatusAliases
  return typeof status === 'string' && Object.hasOwn(aliases, status) ? aliases[status] : status
}

interface Page {
  readonly messages: readonly StoredMessage[]
  readonly cursor: string | null
}

/** The most messages that existing clients may skip: they are read and dropped. */
const skippedMax = 10_000

/** Applies the filters of existing clients, too. They drop messages of a page, so a page may be short. */
async function listMatching(
  filter: MessageFilter,
  query: Query,
  context: BrokerContext,
): Promise<Page> {
  const { offset, from, to, namespace, task } = readFields({
    offset: () =>
      query.offset === undefined
        ? 0
        : parseDecimal('offset', query.offset, { min: 0, max: skippedMax }),
    from: () => readTime('from', query.from),
    to: () => readTime('to', query.to),
    namespace: () => readPlace(query.namespace ?? query.ns, parseNamespace),
    task: () => readPlace(query.task, parseTask),
  })
  if (namespace !== undefined || task !== undefined) {
    const place = await runAdminQuery(context.pool, () => queuePlace(context.pool, filter.queue))
    const isElsewhere =
      (namespace !== undefined && place?.namespace !== namespace) ||
      (task !== undefined && place?.task !== task)
    if (place !== undefined && isElsewhere) return { messages: [], cursor: null }
  }
  const cursor = await skip(filter, query.cursor, offset, context)
  if (cursor === null) return { messages: [], cursor }
  const page = await list(filter, cursor, context)
  const messages = page.messages.filter(
    ({ createdAt }) =>
      (from === undefined || createdAt >= from) && (to === undefined || createdAt <= to),
  )
  return { messages, cursor: page.cursor }
}

function readPlace(name: unknown, parse: (name: unknown) => string): string | undefined {
  return name === undefined || name === '' ? undefined : parse(name)
}

/** The cursor after this number of messages; null if there are not more. */
async function skip(
  filter: MessageFilter,
  start: unknown,
  count: number,
  context: BrokerContext,
): Promise<unknown> {
  let cursor = start
  for (let left = count; left > 0; ) {
    const limit = Math.min(left, context.limits.pageSizeMax)
    const page = await list({ ...filter, limit }, cursor, context)
    if (page.cursor === null) return null
    cursor = page.cursor
    left -= page.messages.length
  }
  return cursor
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
