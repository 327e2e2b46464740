// Pops: three paths, each for GET and POST. A POST may contain acks, which are applied before the pop.

import {
  type Ack,
  type AckResult,
  fieldError,
  leaseTokens,
  type PopBody,
  type PopOptions,
  type PopSource,
  parsePartitionName,
  parseQueueName,
  RouseError,
  readPopBody,
  readPopQuery,
  seqOfTransactionId,
  transactionIdFor,
} from '@rouse/protocol'
import type { PopResponse, PopSpec } from '@rouse/sidecar'
import type { Lease, LeasedMessage } from '@rouse/storage'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openLeases, type UnreadableMessage } from '../encryption/opening.ts'
import { sealedPrefix } from '../encryption/payload-cipher.ts'
import { holderOf } from '../holder.ts'
import { ClientWatch } from '../http/client-watch.ts'
import { withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'
import { type AckOrigin, submitAcks } from './ack.ts'
import { createUndelivered, type Undelivered } from './undelivered.ts'

const paths = [
  '/api/v1/pop/queue/:queue',
  '/api/v1/pop/queue/:queue/partition/:partition',
  '/api/v1/pop',
]

type Params = { readonly queue?: string; readonly partition?: string }

export function popRoutes(app: FastifyInstance, context: BrokerContext): void {
  const undelivered = createUndelivered(context)

  for (const path of paths) {
    app.get(path, { exposeHeadRoute: false }, (request, reply) => {
      const options = readPopQuery(request.query as object, context.limits)
      const pop = toPopSpec(sourceOf(request, options), options, context)
      const watch = new ClientWatch(request, reply, undelivered)
      const startedAtMs = context.clock.wallMs()
      return answerPop({ reply, options, pop, watch, undelivered, context, startedAtMs })
    })
    app.post(
      path,
      {
        preValidation: (request, _reply, done) => {
          request.body ??= {}
          dropNulls(request.body)
          done()
        },
      },
      async (request, reply) => {
        const body = request.body as PopBody
        const options = readPopBody(body, context.limits)
        const pop = toPopSpec(sourceOf(request, options), options, context)
        const watch = new ClientWatch(request, reply, undelivered)
        const origin = { group: options.consumerGroup, request }
        const acks = await acknowledge(body.acks, origin, context)
        const startedAtMs = context.clock.wallMs()
        return answerPop({ reply, options, pop, watch, acks, undelivered, context, startedAtMs })
      },
    )
  }
}

function dropNulls(body: unknown): void {
  const acks = (withoutNulls(body) as { acks?: unknown }).acks
  if (Array.isArray(acks)) for (const ack of acks) withoutNulls(ack, 'result')
}

function sourceOf(request: FastifyRequest, { namespace, task }: PopOptions): PopSource {
  const { queue, partition } = request.params as Params
  if (queue !== undefined) {
    const name = parseQueueName(queue)
    return partition === undefined
      ? { queue: name }
      : { queue: name, partition: parsePartitionName(partition) }
  }
  if (namespace !== undefined || task !== undefined) return { namespace, task }
  throw fieldError('invalid_request', 'namespace', 'or task must be given')
}

function toPopSpec(source: PopSource, options: PopOptions, context: BrokerContext): PopSpec {
  return {
    source,
    group: options.consumerGroup,
    batch: options.batch,
    partitions: options.partitions,
    leaseMs: options.leaseSeconds === undefined ? undefined : options.leaseSeconds * 1_000,
    autoAck: options.autoAck,
    leasePerMessage: options.leasePerMessage,
    subscription: options.subscription,
    holder: holderOf(context.holder, options.consumer),
  }
}

async function acknowledge(
  acks: readonly Ack[] | undefined,
  origin: Omit<AckOrigin, 'field'>,
  context: BrokerContext,
): Promise<AckResult[] | undefined> {
  if (acks === undefined) return undefined
  const { acknowledgmentsMax } = context.limits
  if (acks.length > acknowledgmentsMax) {
    throw fieldError('invalid_request', 'acks', `must have at most ${acknowledgmentsMax} items`)
  }
  return submitAcks(acks, { ...origin, field: 'acks' }, context)
}

interface PopRequest {
  readonly reply: FastifyReply
  readonly options: PopOptions
  readonly pop: PopSpec
  readonly watch: ClientWatch
  readonly acks?: readonly AckResult[] | undefined
  readonly undelivered: Undelivered
  readonly context: BrokerContext
  /** Milliseconds since 1970. */
  readonly startedAtMs: number
}

async function answerPop(request: PopRequest): Promise<FastifyReply> {
  const { reply, options, acks } = request
  const { leases, paused, draining } = await fetchMessages(request)
  if (draining) reply.header('connection', 'close')
  if (leases.length === 0) {
    if (acks !== undefined) return sendJson(reply, popJson([], request))
    if (paused && !options.wait) throw new RouseError('queue_paused')
    return reply.code(204).send()
  }
  try {
    return await deliver(leases, request)
  } catch (error) {
    await takeBack(leases, error, request)
    if (acks === undefined) throw error
    request.context.log.warn({ err: error }, 'acks were applied, but messages were not sent')
    return sendJson(reply, popJson([], request))
  }
}

/** If the request had acks, their results must be reported, so a pop that then fails counts as empty. */
function fetchMessages(request: PopRequest): Promise<PopResponse> {
  const { options, pop, watch, acks, context } = request
  const { timeoutMs } = options
  const fetched: Promise<PopResponse> =
    options.wait && timeoutMs > 0
      ? context.sidecar.submit({ kind: 'POP_WAIT', pop, timeoutMs, signal: watch })
      : context.sidecar.submit({ kind: 'POP', pop, signal: watch })
  if (acks === undefined) return fetched
  return fetched.catch((error: unknown) => {
    context.log.warn({ err: error }, 'acks were applied, but the pop failed')
    return { leases: [], paused: false, draining: false }
  })
}

async function deliver(leases: readonly Lease[], request: PopRequest): Promise<FastifyReply> {
  const { reply, options, watch, context } = request
  const readable = leases.some(isEncrypted) ? await open(leases, request) : leases
  const json = popJson(readable, request)
  if (!(await watch.delivering(options.autoAck ? [] : readable))) {
    return reply.sent ? reply : reply.code(204).send()
  }
  context.deliveryLog?.claimed(readable, options.consumerGroup)
  context.traces.answered(readable)
  if (context.spans.isExporting) {
    context.spans.delivered(readable, options.consumerGroup, request.startedAtMs)
  }
  return sendJson(reply, json)
}

function isEncrypted({ messages }: Lease): boolean {
  return messages.some(({ payload }) => payload.startsWith(sealedPrefix))
}

async function open(leases: readonly Lease[], request: PopRequest): Promise<readonly Lease[]> {
  const { options, undelivered, context } = request
  const { leases: readable, unreadable } = openLeases(leases, context.cipher)
  await undelivered.fail(unreadable, options)
  if (readable.length === 0 && unreadable[0] !== undefined) throw unreadable[0].error
  return readable
}

/** Releases the messages, or fails the unreadable ones, because the response could not be built or sent. */
async function takeBack(
  leases: readonly Lease[],
  error: unknown,
  { options, undelivered, context }: PopRequest,
): Promise<void> {
  if (options.autoAck) {
    const messageIds = leases.flatMap(({ messages }) => messages.map(({ id }) => id))
    context.log.error(
      { err: error, messageIds },
      'messages popped with autoAck could not be sent and are lost for this consumer group',
    )
    return
  }
  await undelivered.fail(findUnreadable(leases, options), options)
  await undelivered.giveBack(leases)
}

/** The messages for which a response cannot be built, even if it contains no other message. */
function findUnreadable(leases: readonly Lease[], options: PopOptions): UnreadableMessage[] {
  return leases.flatMap((lease) =>
    lease.messages.flatMap((message) => {
      try {
        popJson([{ ...lease, messages: [message] }], { options })
        return []
      } catch (error) {
        return [{ lease, message, error: error as Error }]
      }
    }),
  )
}

function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}

/** The body of a response. Payloads are JSON text and are copied without parsing. */
function popJson(
  leases: readonly Lease[],
  { options: { consumerGroup, autoAck }, acks }: Pick<PopRequest, 'options' | 'acks'>,
): string {
  const group = JSON.stringify(consumerGroup)
  const tail = acks === undefined ? '}' : `,"acks":${JSON.stringify(acks)}}`
  const first = leases[0]
  if (first === undefined) {
    return `{"success":true,"queue":null,"consumerGroup":${group},"leaseId":null,"partition":null,"partitionId":null,"messages":[]${tail}`
  }
  let messages = ''
  for (const lease of leases) messages += leaseJson(lease, group, autoAck)
  return (
    `{"success":true,"queue":${JSON.stringify(first.queue)},"consumerGroup":${group},` +
    `"leaseId":${autoAck ? 'null' : `"${first.leaseId}"`},` +
    `"partition":${JSON.stringify(first.partition)},"partitionId":"${first.partitionId}",` +
    `"messages":[${messages.slice(1)}]${tail}`
  )
}

/** Writes a comma before each message. With autoAck leaseId and receipt are null: no ack is needed. */
function leaseJson(lease: Lease, group: string, autoAck: boolean): string {
  const place =
    `,"partition":${JSON.stringify(lease.partition)},"partitionId":"${lease.partitionId}",` +
    `"queue":${JSON.stringify(lease.queue)}`
  const rest = `,"consumerGroup":${group},"attempt":${lease.attempt},"headers":`
  const repeated = repeatedIds(lease.messages)
  const receiptOf = autoAck ? () => '' : leaseTokens(lease.leaseId, lease.partitionId)
  let created = { ms: -1, text: '' }
  let text = ''
  for (const message of lease.messages) {
    const { id, seq, pushedAtMs, traceId } = message
    const transactionId = message.transactionId ?? transactionIdFor(lease.partitionId, seq)
    const receipt = receiptOf(seq, transactionId)
    const leaseId = isAmbiguous(lease, message, repeated) ? receipt : lease.leaseId
    // Messages of one push have the same time.
    if (pushedAtMs !== created.ms) {
      created = { ms: pushedAtMs, text: new Date(pushedAtMs).toISOString() }
    }
    text +=
      `,{"id":"${id}","transactionId":${JSON.stringify(transactionId)},` +
      `"traceId":${traceId === null ? 'null' : JSON.stringify(traceId)},` +
      `"data":${message.payload},"createdAt":"${created.text}"${place},"seq":${seq},` +
      (autoAck
        ? '"leaseId":null,"receipt":null'
        : `"leaseId":"${leaseId}","receipt":"${receipt}"`) +
      `${rest}${message.headers ?? 'null'}}`
  }
  return text
}

/** The transactionIds that several of the messages have: a producer may use one again after a while. */
function repeatedIds(messages: readonly LeasedMessage[]): ReadonlySet<string> | undefined {
  const seen = new Set<string>()
  let repeated: Set<string> | undefined
  for (const { transactionId } of messages) {
    if (transactionId === null) continue
    if (seen.size === seen.add(transactionId).size) (repeated ??= new Set()).add(transactionId)
  }
  return repeated
}

/**
 * Whether the transactionId could also mean another message of the lease: its own is the derived one of
 * another seq, or occurs twice. The leaseId of such a message is its receipt, so that an ack by leaseId and
 * transactionId ends no other message. Like any leaseId, it extends and releases the whole pop.
 */
function isAmbiguous(
  { partitionId }: Lease,
  { seq, transactionId }: LeasedMessage,
  repeated: ReadonlySet<string> | undefined,
): boolean {
  if (transactionId === null) return false
  if (repeated?.has(transactionId) === true) return true
  return (seqOfTransactionId(partitionId, transactionId) ?? seq) !== seq
}
