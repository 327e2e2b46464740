// The three pop paths, by GET and POST. A POST may acknowledge first: ack and fetch in one request.

import { setTimeout as delay } from 'node:timers/promises'
import type { PopSource } from '@rouse/protocol'
import {
  type Ack,
  type AckResult,
  AckSchema,
  fieldError,
  type PopBody,
  type PopOptions,
  parsePartitionName,
  parseQueueName,
  RouseError,
  readPopBody,
  readPopQuery,
} from '@rouse/protocol'
import type { PopResponse, PopSpec } from '@rouse/sidecar'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ClientWatch, createClientWatch } from '../http/client-watch.ts'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { submitAcks } from './ack-items.ts'
import { createGiveBackPace } from './give-back-pace.ts'
import { openLeases, type UnreadableMessage, unreadableMessage } from './open-leases.ts'
import { popAnswer } from './pop-answer.ts'

const paths = [
  '/api/v1/pop/queue/:queue',
  '/api/v1/pop/queue/:queue/partition/:partition',
  '/api/v1/pop',
]

type Params = { readonly queue?: string; readonly partition?: string }

/** `readPopBody` validates the other fields. */
const popBodySchema = {
  type: 'object',
  properties: { acks: { type: 'array', items: bodySchema(AckSchema) } },
}

export function popRoutes(app: FastifyInstance, context: BrokerContext): void {
  const watchClient = createClientWatch({ release: (leaseIds) => giveBack(leaseIds, context) })
  const pauseBefore = createGiveBackPace()

  for (const path of paths) {
    app.get(path, (request, reply) => {
      const options = readPopQuery(request.query as object, context.limits)
      const pop = toPopSpec(sourceOf(request, options), options, context)
      return answerPop({
        reply,
        options,
        pop,
        watch: watchClient(request, reply),
        pauseBefore,
        context,
      })
    })
    app.post(
      path,
      {
        schema: { body: popBodySchema },
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
        const watch = watchClient(request, reply)
        const acks = await acknowledge(body.acks, options.consumerGroup, context)
        return answerPop({ reply, options, pop, watch, acks, pauseBefore, context })
      },
    )
  }
}

function dropNulls(body: unknown): void {
  const acks = (withoutNulls(body) as { acks?: unknown }).acks
  if (Array.isArray(acks)) for (const ack of acks) withoutNulls(ack)
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
    subscription: options.subscription,
    holder: context.holder,
  }
}

async function acknowledge(
  acks: readonly Ack[] | undefined,
  group: string,
  context: BrokerContext,
): Promise<AckResult[] | undefined> {
  if (acks === undefined) return undefined
  if (acks.length > context.limits.acknowledgmentsMax) {
    throw fieldError(
      'invalid_request',
      'acks',
      `must be at most ${context.limits.acknowledgmentsMax}`,
    )
  }
  return submitAcks(acks, group, context)
}

interface PopRequest {
  readonly reply: FastifyReply
  readonly options: PopOptions
  readonly pop: PopSpec
  readonly watch: ClientWatch
  readonly acks?: readonly AckResult[] | undefined
  readonly pauseBefore: ReturnType<typeof createGiveBackPace>
  readonly context: BrokerContext
}

async function answerPop(request: PopRequest): Promise<FastifyReply> {
  const { reply, options, acks } = request
  const { leases, paused, draining } = await fetchMessages(request)
  if (draining) reply.header('connection', 'close')
  if (leases.length === 0) {
    if (acks !== undefined) return sendAnswer(reply, popAnswer([], { ...options, acks }))
    if (paused && !options.wait) throw new RouseError('queue_paused')
    return reply.code(204).send()
  }
  try {
    return await deliver(leases, request)
  } catch (error) {
    await takeBack(leases, error, request)
    if (acks === undefined) throw error
    request.context.log.warn({ err: error }, 'acknowledged, but could not return messages')
    return sendAnswer(reply, popAnswer([], { ...options, acks }))
  }
}

async function deliver(
  leases: PopResponse['leases'],
  { reply, options, acks, watch, context }: PopRequest,
): Promise<FastifyReply> {
  const opened = openLeases(leases, context.cipher)
  const [first] = opened.unreadable
  if (first !== undefined) {
    await fail(opened.unreadable, options, context)
    if (opened.leases.length === 0) throw first.error
  }
  const answer = popAnswer(opened.leases, { ...options, acks })
  if (!(await watch.delivering(options.autoAck ? [] : opened.leases))) return reply.code(204).send()
  context.deliveryLog?.claimed(opened.leases, options.consumerGroup)
  return sendAnswer(reply, answer)
}

/** Charges the attempt and starts the retry. If that fails, the message is retried when its lease expires. */
async function fail(
  unreadable: readonly UnreadableMessage[],
  { autoAck }: PopOptions,
  { sidecar, log }: BrokerContext,
): Promise<void> {
  if (unreadable.length === 0) return
  const messageIds = unreadable.map(({ id }) => id)
  log.error({ messageIds, autoAck }, 'stored messages cannot be read')
  if (autoAck) return
  const items = unreadable.map(({ ending }) => ending)
  await sidecar.submit({ kind: 'ACK_BATCH', items }).catch((error: unknown) => {
    log.warn({ err: error, messageIds }, 'could not fail unreadable messages')
  })
}

/**
 * If a response cannot be built or sent, nothing stays leased. A message that cannot be read is failed. The
 * others are given back uncharged and with a delay; otherwise the next waiter would get them at once.
 */
async function takeBack(
  leases: PopResponse['leases'],
  error: unknown,
  request: PopRequest,
): Promise<void> {
  const { options, pauseBefore, context } = request
  if (options.autoAck) {
    const messageIds = leases.flatMap(({ messages }) => messages.map(({ id }) => id))
    context.log.error(
      { err: error, messageIds },
      'messages popped with autoAck could not be returned',
    )
    return
  }
  await fail(findUnreadable(leases, request), options, context)
  const nowMs = context.clock.nowMs()
  const pauseMs = Math.max(...leases.map(({ queue }) => pauseBefore(queue, nowMs)))
  if (!context.phase.isDraining) await delay(pauseMs)
  giveBack([...new Set(leases.map(({ leaseId }) => leaseId))], context)
}

/** The messages that cannot be delivered even alone. */
function findUnreadable(
  leases: PopResponse['leases'],
  { options }: PopRequest,
): UnreadableMessage[] {
  return leases.flatMap((lease) =>
    lease.messages.flatMap((message) => {
      try {
        popAnswer([{ ...lease, messages: [message] }], options)
        return []
      } catch (error) {
        return [unreadableMessage(lease, message, error as Error)]
      }
    }),
  )
}

/** Completed acks must be reported, so a fetch that fails after them counts as empty. */
function fetchMessages(request: PopRequest): Promise<PopResponse> {
  const { options, pop, watch, acks, context } = request
  const { timeoutMs } = options
  const fetched: Promise<PopResponse> =
    options.wait && timeoutMs > 0
      ? context.sidecar.submit({ kind: 'POP_WAIT', pop, timeoutMs, signal: watch })
      : context.sidecar.submit({ kind: 'POP', pop, signal: watch })
  if (acks === undefined) return fetched
  return fetched.catch((error: unknown) => {
    context.log.warn({ err: error }, 'acknowledged, but could not pop messages')
    return { leases: [], paused: false, draining: false }
  })
}

function sendAnswer(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}

function giveBack(leaseIds: readonly string[], context: BrokerContext): void {
  for (const leaseId of leaseIds) {
    context.sidecar.submit({ kind: 'RELEASE', leaseId }).catch((error: unknown) => {
      context.log.warn({ err: error, leaseId }, 'could not release an undelivered lease')
    })
  }
}
