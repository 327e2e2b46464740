// The three pop paths, by GET and by POST. A POST may acknowledge first: ack and fetch in one request.
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
import type { PopOutcome, PopSource, PopSpec } from '@rouse/sidecar'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { submitAcks } from '../ack-items.ts'
import type { BrokerContext } from '../broker-context.ts'
import { withoutNulls } from '../json-body.ts'
import { popAnswer } from '../pop-answer.ts'
import { bodySchema } from '../request-schema.ts'
import { type ClientWatch, createClientWatch } from '../undelivered.ts'

const paths = [
  '/api/v1/pop/queue/:queue',
  '/api/v1/pop/queue/:queue/partition/:partition',
  '/api/v1/pop',
]

type Params = { readonly queue?: string; readonly partition?: string }

/** What the other fields may be is known to `readPopBody`. */
const popBodySchema = {
  type: 'object',
  properties: { acks: { type: 'array', items: bodySchema(AckSchema) } },
}

export function popRoutes(app: FastifyInstance, context: BrokerContext): void {
  const watchClient = createClientWatch({ release: (leaseIds) => giveBack(leaseIds, context) })

  for (const path of paths) {
    app.get(path, (request, reply) => {
      const options = readPopQuery(request.query as object, context.limits)
      const pop = toPopSpec(sourceOf(request, options), options, context)
      return answerPop({ reply, options, pop, watch: watchClient(request, reply), context })
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
        return answerPop({ reply, options, pop, watch, acks, context })
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
  readonly context: BrokerContext
}

async function answerPop(request: PopRequest): Promise<FastifyReply> {
  const { reply, options, acks, watch, context } = request
  const { leases, paused, draining } = await fetchMessages(request)
  if (draining) reply.header('connection', 'close')
  if (leases.length === 0) {
    if (acks !== undefined)
      return sendAnswer(reply, popAnswer([], { ...options, acks, cipher: context.cipher }))
    if (paused && !options.wait) throw new RouseError('queue_paused')
    return reply.code(204).send()
  }
  const answer = openAnswer(leases, request)
  if (!(await watch.delivering(options.autoAck ? [] : leases))) return reply.code(204).send()
  context.deliveryLog.claimed(leases, options.consumerGroup)
  return sendAnswer(reply, answer)
}

/**
 * A node without the key gives messages back at once, uncharged: another one may have it. One whose payload is broken it keeps,
 * so that the attempt is charged in the end and the lane goes on.
 */
function openAnswer(leases: PopOutcome['leases'], request: PopRequest): string {
  const { options, acks, context } = request
  try {
    return popAnswer(leases, { ...options, acks, cipher: context.cipher })
  } catch (error) {
    if (error instanceof RouseError && error.code === 'encryption_unavailable') {
      giveBack([...new Set(leases.map(({ leaseId }) => leaseId))], context)
    }
    throw error
  }
}

/** Acks that were made must be told of: a fetch that fails after them is an empty one. */
function fetchMessages(request: PopRequest): Promise<PopOutcome> {
  const { options, pop, watch, acks, context } = request
  const { timeoutMs } = options
  const fetched: Promise<PopOutcome> =
    options.wait && timeoutMs > 0
      ? context.sidecar.submit({ kind: 'POP_WAIT', pop, timeoutMs, signal: watch })
      : context.sidecar.submit({ kind: 'POP', pop, signal: watch })
  if (acks === undefined) return fetched
  return fetched.catch((error: unknown) => {
    context.log.warn({ err: error }, 'acknowledged, but could not fetch')
    return { leases: [], paused: false, draining: false }
  })
}

function sendAnswer(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}

function giveBack(leaseIds: readonly string[], context: BrokerContext): void {
  for (const leaseId of leaseIds) {
    context.sidecar.submit({ kind: 'RELEASE', leaseId }).catch((error: unknown) => {
      context.log.warn(
        { err: error, leaseId },
        'a lease of a client that left could not be released',
      )
    })
  }
}
