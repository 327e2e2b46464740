// A message's timeline: the events reported by its consumers, and the failed attempts.
import {
  fieldError,
  isPartitionId,
  parseConsumerGroup,
  parseDecimal,
  parseTransactionId,
  RouseError,
  readEach,
  readFields,
  requestDefaults,
  shownPartition,
  type TraceAnswer,
  type TraceBody,
  type TraceNamesAnswer,
  type Verb,
} from '@rouse/protocol'
import {
  addTrace,
  attemptTraces,
  type NewTrace,
  partitionNames,
  type TraceRow,
  traceNames,
  tracesByName,
  tracesOfMessage,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import type { Principal } from '../auth/principal.ts'
import { runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { readOffset, readText, readTime } from '../http/page.ts'
import { requireReadable, shownTo } from '../http/redaction.ts'
import { jsonList, jsonWith } from '../http/stored-json.ts'
import type { BrokerContext } from '../worker/context.ts'
import { jsonText } from './push.ts'

type Params = {
  readonly partitionId: string
  readonly transactionId: string
  readonly name: string
}
type Query = Readonly<Record<string, unknown>>

const namesMax = 100

export function traceRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context
  const readLimit = ({ limit }: Query) =>
    limit === undefined
      ? requestDefaults.pageSize
      : parseDecimal('limit', limit, { min: 1, max: limits.pageSizeMax })

  app.post(
    '/api/v1/traces',
    {
      preValidation: async (request) => void withoutNulls(request.body, 'data'),
    },
    async (request, reply): Promise<TraceAnswer> => {
      const trace = readTrace(request.body as TraceBody, limits.payloadBytesMax)
      await requireOnPartition(request.principal, 'pop', trace.partitionId, context)
      const id = isPartitionId(trace.partitionId)
        ? await runAdminQuery(pool, () => addTrace(pool, trace))
        : undefined
      if (id === undefined) throw noSuchPartition(trace.partitionId)
      reply.code(201)
      return { success: true, id, traceId: id }
    },
  )

  app.get('/api/v1/traces/:partitionId/:transactionId', async (request, reply) => {
    const { partitionId, transactionId } = request.params as Params
    const key = parseTransactionId(transactionId)
    const limit = readLimit(request.query as Query)
    const timeline = isPartitionId(partitionId)
      ? await timelineOf(context, request.principal, { partitionId, transactionId: key, limit })
      : undefined
    if (timeline === undefined) throw noSuchPartition(partitionId)
    reply.type('application/json; charset=utf-8')
    return jsonList(
      'traces',
      timeline.map((trace) => textFor(request.principal, trace)),
    )
  })

  app.get('/api/v1/traces/by-name/:name', async (request, reply) => {
    const name = parseTransactionId((request.params as Params).name, 'name')
    const query = request.query as Query
    const filter = readFields({
      limit: () => readLimit(query),
      before: () => readCursor(query),
      offset: () => readOffset(query),
      from: () => readTime('from', query.from),
      to: () => readTime('to', query.to),
    })
    const { limit } = filter
    const traces = await runAdminQuery(pool, () => tracesByName(pool, { name, ...filter }))
    reply.type('application/json; charset=utf-8')
    const cursor = traces.length < limit ? null : traces.at(-1)?.id
    const texts = traces.map((trace) => textFor(request.principal, trace))
    return jsonList('traces', texts, { cursor })
  })

  app.get('/api/v1/traces/names', async (request): Promise<TraceNamesAnswer> => {
    const query = request.query as Query
    const page = readFields({
      limit: () => readLimit(query),
      offset: () => readOffset(query),
      search: () => (query.search === undefined ? undefined : readText('search', query.search)),
    })
    const names = await runAdminQuery(pool, () => traceNames(pool, page))
    return { names: names.map((name) => ({ ...name, lastAt: name.lastAt.toISOString() })) }
  })
}

/** A principal with the grant for every queue costs no query here. */
async function requireOnPartition(
  principal: Principal,
  verb: Verb,
  partitionId: string,
  { pool }: BrokerContext,
): Promise<void> {
  if (principal.grants.everywhere.has(verb) || !isPartitionId(partitionId)) return
  const names = await runAdminQuery(pool, () => partitionNames(pool, partitionId))
  const missing = () => noSuchPartition(partitionId)
  if (names === undefined) throw missing()
  requireOnFound(principal, verb, names.queue, missing)
}

function readTrace(body: TraceBody, dataBytesMax: number): NewTrace {
  const { traceNames: names = [], consumerGroup, eventType = 'info' } = body
  if (names.length > namesMax) {
    throw fieldError('invalid_request', 'traceNames', `must have at most ${namesMax} items`)
  }
  return readFields({
    partitionId: () => body.partitionId,
    transactionId: () => parseTransactionId(body.transactionId),
    consumerGroup: () => (consumerGroup === undefined ? null : parseConsumerGroup(consumerGroup)),
    traceNames: () => readEach(names, (name, i) => parseTransactionId(name, `traceNames[${i}]`)),
    eventType: () => parseTransactionId(eventType, 'eventType'),
    data: () => jsonText(body, 'data', 'data', dataBytesMax),
  })
}

function readCursor({ cursor }: Query): string | undefined {
  if (cursor === undefined) return undefined
  if (typeof cursor === 'string' && isPartitionId(cursor)) return cursor
  throw fieldError('invalid_request', 'cursor', 'is not a valid cursor')
}

/** Oldest first. Undefined if the partition does not exist. */
async function timelineOf(
  { pool }: BrokerContext,
  principal: Principal,
  of: { readonly partitionId: string; readonly transactionId: string; readonly limit: number },
): Promise<TraceRow[] | undefined> {
  const { partitionId, transactionId, limit } = of
  const names = await runAdminQuery(pool, () => partitionNames(pool, partitionId))
  if (names === undefined) return undefined
  requireReadable(principal, names.queue, () => noSuchPartition(partitionId))
  const reported = await runAdminQuery(pool, () => {
    return tracesOfMessage(pool, partitionId, transactionId, limit)
  })
  const attempts = await runAdminQuery(pool, () => attemptTraces(pool, partitionId, transactionId))
  const partition = shownPartition(names.partition)
  const place = { queue: names.queue, partition, partitionId, transactionId }
  const events = attempts.map((attempt) => ({ id: null, ...place, traceNames: [], ...attempt }))
  return [...reported.reverse(), ...events].sort(
    (a, b) => Number(a.createdAt) - Number(b.createdAt),
  )
}

function textFor(principal: Principal, { data, createdAt, ...trace }: TraceRow): string {
  const text = jsonWith({ ...trace, createdAt: createdAt.toISOString() }, { data })
  return shownTo(principal, trace.queue, text)
}

function noSuchPartition(partitionId: string): RouseError {
  return new RouseError('not_found', `there is no partition ${partitionId}`)
}
