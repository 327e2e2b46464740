// Lists and shows messages without leasing them.
import {
  fieldError,
  isPartitionId,
  messageStates,
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
  findMessage,
  followMessages,
  listMessages,
  type MessageFilter,
  type Moment,
  queuePlace,
  type StoredMessage,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import { messageCursor, readMessageCursor } from '../http/message-cursor.ts'
import { readText, readTime } from '../http/page.ts'
import { requireReadable, shownTo } from '../http/redaction.ts'
import { dataOf, jsonList, jsonWith } from '../http/stored-json.ts'
import type { BrokerContext } from '../worker/context.ts'
import { groupsText, shownState } from './message/groups.ts'

export type Query = Readonly<Record<string, unknown>>
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
    const texts = page.messages.map((message) =>
      shownTo(request.principal, filter.queue, messageText(message, filter.queue, context)),
    )
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
    requireReadable(request.principal, queue, missing)
    reply.type('application/json; charset=utf-8')
    const text = messageText(message, queue, context, {}, { groups: groupsText(groups) })
    return shownTo(request.principal, queue, text)
  })
}

export function readFilter(query: Query, limitMax: number): MessageFilter {
  const { partition, consumerGroup, limit } = query
  return readFields({
    queue: () => parseQueueName(query.queue),
    partition: () => (partition === undefined ? undefined : parsePartitionName(partition)),
    group: () =>
      consumerGroup === undefined
        ? requestDefaults.consumerGroup
        : parseConsumerGroup(consumerGroup),
    status: () => readStatus(query),
    errorCode: () => readErrorCode(query),
    limit: () =>
      limit === undefined
        ? requestDefaults.pageSize
        : parseDecimal('limit', limit, { min: 1, max: limitMax }),
  })
}

/** The status of the messages to list. `state` has other names for the same statuses. */
function readStatus({ status, state }: Query): string | undefined {
  if (state === undefined) {
    return status === undefined
      ? undefined
      : parseChoice('status', withoutAlias(status), messageStatuses)
  }
  if (status !== undefined)
    throw fieldError('invalid_request', 'state', 'and status are both given')
  const chosen = parseChoice('state', state, messageStates)
  return chosen === 'ready' ? 'pending' : chosen
}

/** Other messages have no error. */
function readErrorCode(query: Query): string | undefined {
  if (query.errorCode === undefined) return undefined
  const status = readStatus(query)
  if (status !== 'retrying' && status !== 'dead')
    throw fieldError('invalid_request', 'errorCode', 'needs state=retrying or state=dead')
  return readText('errorCode', query.errorCode)
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
export async function listMatching(
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
  // The log is read from the first message of the span to its last, by the times at which they entered it. The
  // other lists are short.
  const span = { ...filter, from, before: to && new Date(to.getTime() + 1) }
  const cursor = await skip(span, query.cursor, offset, context)
  if (cursor === null) return { messages: [], cursor }
  const page = await list(span, cursor, context)
  const messages = page.messages.filter(
    ({ createdAt, seq }) =>
      seq !== null ||
      ((from === undefined || createdAt >= from) && (to === undefined || createdAt <= to)),
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

/** An empty page that is not the last is followed by the next one, until this time has passed. */
const emptyPagesMs = 100

/** Lists messages in the log first, then scheduled ones, then those cancelled while they were scheduled. */
async function list(
  filter: MessageFilter,
  cursor: unknown,
  { pool, clock }: BrokerContext,
): Promise<Page> {
  const untilMs = clock.nowMs() + emptyPagesMs
  let next = cursor === undefined ? undefined : readMessageCursor(cursor)
  let messages: readonly StoredMessage[]
  do {
    const after = next
    const page = await runAdminQuery(pool, () => listMessages(pool, filter, after))
    messages = page.messages
    next = page.next
  } while (messages.length === 0 && next !== undefined && clock.nowMs() < untilMs)
  return { messages, cursor: next === undefined ? null : messageCursor(next) }
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

export function messageText(
  message: StoredMessage,
  queue: string,
  { cipher }: BrokerContext,
  more: object = {},
  texts: Readonly<Record<string, string | null>> = {},
): string {
  const { payload, headers, createdAt, dueAt, transactionId, status, ...fields } = message
  const opened = dataOf(cipher, { queue, id: message.id }, payload)
  return jsonWith(
    {
      ...fields,
      ...(status !== undefined && { status, state: shownState(status) }),
      ...opened.more,
      transactionId: transactionId ?? generatedId(message),
      queue,
      createdAt: createdAt.toISOString(),
      dueAt: dueAt?.toISOString() ?? null,
      ...more,
    },
    { data: opened.data, headers, ...texts },
  )
}

function generatedId({ partitionId, seq, id }: StoredMessage): string {
  return partitionId === null || seq === null ? id : transactionIdFor(partitionId, seq)
}
