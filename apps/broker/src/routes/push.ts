// Pushes: turns the items of a request into messages and submits all of them to the sidecar in one operation.
import {
  allFaults,
  fieldError,
  isSampled,
  type PushBody,
  type PushedItem,
  type PushItem,
  parsePartitionName,
  parseQueueName,
  parseTime,
  parseTransactionId,
  RouseError,
  transactionIdFor,
} from '@rouse/protocol'
import { SidecarError } from '@rouse/sidecar'
import { forgetfulQueue, type NewMessage, type PushedMessage, type UniqueKey } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import { exactTextOf, withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'

/** Responds after COMMIT, because the sidecar resolves only then. */
export function pushRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/push',
    {
      preValidation: (request, _reply, done) => {
        dropNulls(request.body)
        done()
      },
    },
    async (request, reply) => {
      const startedMs = context.clock.nowMs()
      const { items: given, repeatAfterMs } = request.body as PushBody
      const { traceparent } = request.headers
      const read = readPushItems(given, context)
      const span = traceparent === undefined ? undefined : context.spans.push(read, traceparent)
      const items = span?.items ?? read
      reply.code(201).type('application/json; charset=utf-8')
      if (items.length === 0) return '[]'
      if (repeatAfterMs !== undefined) await checkRepeat(given, repeatAfterMs, context)
      const pushed = await context.sidecar
        .submit({ kind: 'PUSH', items, bytes: bytesOf(items) })
        .catch((error: unknown) => {
          throw atItem(error, (index) => `items[${index}]`)
        })
      span?.end()
      recordTimes(pushed, context.clock.nowMs() - startedMs, context)
      return pushedJson(items, pushed)
    },
  )
}

function dropNulls(body: unknown): void {
  const items = (body as { items?: unknown } | undefined)?.items
  if (!Array.isArray(items)) return
  for (const item of items) dropItemNulls(item)
}

/** `null` means absent, except as the payload. */
export function dropItemNulls(item: unknown): void {
  const unique = (withoutNulls(item, 'payload') as { unique?: unknown } | null)?.unique
  withoutNulls(unique)
}

/** SQL refuses one message of the call by its number; the error names its field in the body. */
export function atItem(error: unknown, pathOf: (index: number) => string): unknown {
  if (!(error instanceof SidecarError) || error.code !== 'refused') return error
  const { item, field } = error.detail
  if (typeof item !== 'number' || typeof field !== 'string') return error
  const { state, message } = error
  const detail = { ...error.detail, field: `${pathOf(item - 1)}.${field}` }
  return new SidecarError('refused', message, { cause: error, state, detail })
}

/** Most messages are neither slow nor in the sample. */
function recordTimes(
  pushed: readonly PushedMessage[],
  ms: number,
  { traces, config }: Pick<BrokerContext, 'traces' | 'config'>,
): void {
  const isSlow = ms >= config.whySlowMs
  for (const { messageId } of pushed) {
    if (isSlow || isSampled(messageId)) traces.pushed(messageId, ms)
  }
}

/** Validates the items of a request and builds the messages. `path` is their position in the body. */
export function readPushItems(
  items: readonly PushItem[],
  context: BrokerContext,
  path = 'items',
): NewMessage[] {
  if (items.length > context.limits.pushItemsMax) {
    throw fieldError(
      'invalid_request',
      path,
      `must have at most ${context.limits.pushItemsMax} items`,
    )
  }
  try {
    return items.map((item) => readPushItem(item, context, ''))
  } catch {
    return readWithPaths(items, context, path)
  }
}

/** Only errors name the fields, and their paths cost as much as the rest of reading an item. */
function readWithPaths(
  items: readonly PushItem[],
  context: BrokerContext,
  path: string,
): NewMessage[] {
  try {
    return items.map((item, i) => readPushItem(item, context, `${path}[${i}]`))
  } catch (error) {
    throw allFaults(error, readsOf(items, context, path))
  }
}

/** Fields that are validated together. To find all errors, each set is tried in an otherwise valid item. */
const itemParts: readonly (readonly (keyof PushItem)[])[] = [
  ['queue'],
  ['payload'],
  ['dedupeKey', 'transactionId'],
  ['traceId'],
  ['headers'],
  ['delayMs', 'runAt'],
  ['partition', 'priority'],
  ['unique'],
]
const goodItem: PushItem = { queue: 'q', payload: null }

function* readsOf(
  items: readonly PushItem[],
  context: BrokerContext,
  path: string,
): Generator<() => unknown> {
  for (const [i, item] of items.entries()) {
    for (const part of itemParts) {
      const fields = Object.fromEntries(part.map((name) => [name, item[name]]))
      yield () => readPushItem({ ...goodItem, ...fields }, context, `${path}[${i}]`)
    }
  }
}

function readPushItem(item: PushItem, context: BrokerContext, path: string): NewMessage {
  const { partition, traceId, headers } = item
  const { payloadBytesMax, messageHeadersBytesMax } = context.limits
  return {
    queue: parseQueueName(item.queue, `${path}.queue`),
    partition:
      partition === undefined ? undefined : parsePartitionName(partition, `${path}.partition`),
    id: context.newMessageId(),
    payload: jsonText(item, 'payload', `${path}.payload`, payloadBytesMax),
    transactionId: readTransactionId(item, path),
    traceId: traceId === undefined ? undefined : parseTransactionId(traceId, `${path}.traceId`),
    headers:
      headers === undefined
        ? undefined
        : jsonText(item, 'headers', `${path}.headers`, messageHeadersBytesMax),
    delayMs: item.delayMs,
    runAtMs: item.runAt === undefined ? undefined : readRunAt(item, item.runAt, context, path),
    priority: item.priority,
    options: readOptions(item, path),
  }
}

/** What the message has instead of its queue's options. The schema has checked the values. */
function readOptions(item: PushItem, path: string): NewMessage['options'] {
  const { priority, retryLimit, retryBackoffMs, ttlMs, unique } = item
  if (priority !== undefined && priority > 0 && item.partition !== undefined) {
    throw fieldError('invalid_request', `${path}.priority`, 'is not possible with a partition')
  }
  const given = retryLimit ?? retryBackoffMs ?? ttlMs ?? unique
  if (given === undefined) return undefined
  return {
    retryLimit,
    retryBackoffMs: typeof retryBackoffMs === 'number' ? [retryBackoffMs] : retryBackoffMs,
    ttlMs,
    unique: unique && readUnique(unique, `${path}.unique`),
  }
}

/** The rule for names applies to the key. The schema has checked the other fields. */
function readUnique(unique: UniqueKey, path: string): UniqueKey {
  return { ...unique, key: parseTransactionId(unique.key, `${path}.key`) }
}

/** A missing transactionId is derived from seq, or, for a scheduled message, from its id. */
function readTransactionId(
  { dedupeKey, transactionId }: PushItem,
  path: string,
): string | undefined {
  if (dedupeKey !== undefined) {
    if (transactionId !== undefined && transactionId !== dedupeKey) {
      throw fieldError('invalid_request', `${path}.dedupeKey`, 'and transactionId differ')
    }
    return parseTransactionId(dedupeKey, `${path}.dedupeKey`)
  }
  return transactionId === undefined
    ? undefined
    : parseTransactionId(transactionId, `${path}.transactionId`)
}

function readRunAt(
  item: PushItem,
  runAt: string,
  { limits, clock }: BrokerContext,
  path: string,
): number {
  if (item.delayMs !== undefined) {
    throw fieldError('invalid_delay', `${path}.runAt`, 'and delayMs are both given')
  }
  const runAtMs = parseTime(`${path}.runAt`, runAt)
  if (runAtMs - clock.wallMs() > limits.delayMsMax) {
    throw fieldError('invalid_delay', `${path}.runAt`, `is more than ${limits.delayMsMax} ms ahead`)
  }
  return runAtMs
}

/** A member of a parsed body as the JSON text that is stored. An absent member is stored as `null`. */
export function jsonText<Name extends 'payload' | 'headers' | 'data' | 'result' | 'progress'>(
  holder: { readonly [name in Name]?: unknown },
  name: Name,
  field: string,
  bytesMax: number,
): string {
  let text: string
  try {
    text = JSON.stringify(holder[name] ?? null)
  } catch {
    // Only deep nesting can cause this: V8 parses any depth, but serialises only as deep as its stack allows.
    const code = name === 'headers' ? 'invalid_headers' : 'invalid_payload'
    throw fieldError(code, field, 'is nested too deeply')
  }
  text = exactTextOf(holder, name) ?? text
  // A UTF-16 unit takes at most three bytes, so most texts need no counting.
  if (text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax) {
    throw new RouseError('payload_too_large', `${field} must be at most ${bytesMax} bytes`, {
      errors: [{ field, message: `must be at most ${bytesMax} bytes` }],
    })
  }
  return text
}

/** An estimate, for the batch limits of the sidecar. */
export function bytesOf(items: readonly NewMessage[]): number {
  return items.reduce((sum, item) => sum + item.payload.length + (item.headers?.length ?? 0), 0)
}

/** `toPushedAnswer` as JSON text, for large pushes: without an object for each message. */
export function pushedJson(items: readonly NewMessage[], pushed: readonly PushedMessage[]): string {
  let text = ''
  let queue = { name: '', json: '""' }
  for (let index = 0; index < pushed.length; index += 1) {
    const result = pushed[index] as PushedMessage
    const { queue: name, transactionId } = items[index] as NewMessage
    const { status, messageId, partitionId } = result
    if (name !== queue.name) queue = { name, json: JSON.stringify(name) }
    const key = transactionId === undefined ? 'null' : JSON.stringify(transactionId)
    const known = transactionId === undefined ? `"${generatedTransactionId(result)}"` : key
    text +=
      `,{"index":${index},"status":"${status}","id":"${messageId}","queue":${queue.json},` +
      `"partition":${JSON.stringify(result.partition)},"partitionId":"${partitionId}",` +
      `"dedupeKey":${key},"message_id":"${messageId}","transaction_id":${known},` +
      `"partition_id":"${partitionId}","queueName":${queue.json}}`
  }
  return `[${text.slice(1)}]`
}

export function toPushedAnswer(
  items: readonly NewMessage[],
  pushed: readonly PushedMessage[],
): PushedItem[] {
  return pushed.map((result, index) => {
    const item = items[index] as NewMessage
    return {
      index,
      status: result.status,
      id: result.messageId,
      queue: item.queue,
      partition: result.partition,
      partitionId: result.partitionId,
      dedupeKey: item.transactionId ?? null,
      message_id: result.messageId,
      transaction_id: item.transactionId ?? generatedTransactionId(result),
      partition_id: result.partitionId,
      queueName: item.queue,
    }
  })
}

function generatedTransactionId(result: PushedMessage): string {
  return result.status === 'queued'
    ? transactionIdFor(result.partitionId, result.seq)
    : result.messageId
}

/**
 * Checks a push that repeats an earlier push with an unknown outcome. The client sent the same items for the
 * first time `repeatAfterMs` ago. Their dedupe keys ensure that each message is stored once, as long as the
 * queue remembers the keys. If the queue may have forgotten them, the repeat is rejected: the producer
 * decides whether to risk a duplicate.
 */
async function checkRepeat(
  items: readonly PushItem[],
  repeatAfterMs: number,
  { pool, config }: Pick<BrokerContext, 'pool' | 'config'>,
): Promise<void> {
  if (items.some(({ dedupeKey, transactionId }) => (dedupeKey ?? transactionId) === undefined)) {
    throw tooLate('an item has no dedupeKey')
  }
  // This request may be stored at any time before its own deadline.
  const windowMs = repeatAfterMs + config.writeTimeoutMs
  const queues = [...new Set(items.map(({ queue }) => queue))]
  const queue = await runAdminQuery(pool, () => forgetfulQueue(pool, queues, windowMs))
  if (queue !== undefined) {
    throw tooLate(`the dedupWindowSeconds of the queue "${queue}" is too short`)
  }
}

function tooLate(reason: string): RouseError {
  return new RouseError(
    'repeat_too_late',
    `the first attempt may have been stored, and a repeat might store it twice: ${reason}`,
  )
}
