// Acks: of one message, of a list of messages, or of all messages that a lease still holds.
import {
  type Ack,
  type AckBody,
  type AckLeaseBody,
  type AckListBody,
  type AckResult,
  decodeLeaseToken,
  fieldError,
  type Limits,
  leaseUuidOf,
  parseConsumerGroup,
  RouseError,
  readEach,
} from '@rouse/protocol'
import type { AckOutcome } from '@rouse/sidecar'
import type { AckItem } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { refuseForeign } from '../auth/forbidden.ts'
import { withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'
import { findAcked } from './acked-messages.ts'
import { jsonText } from './push.ts'

export function ackRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/ack',
    {
      preValidation: (request, _reply, done) => {
        withoutNulls(request.body, 'result')
        done()
      },
    },
    async (request) => [await ackOne(request.body as AckBody, request, context)],
  )

  app.post(
    '/api/v1/ack/batch',
    {
      preValidation: (request, _reply, done) => {
        dropNulls(request.body)
        done()
      },
    },
    async (request) => {
      const body = request.body as AckListBody | AckLeaseBody
      const group = groupOf(body)
      if (!('acknowledgments' in body)) return [await ackLease(body, group, request, context)]
      const { acknowledgmentsMax } = context.limits
      if (body.acknowledgments.length > acknowledgmentsMax) {
        throw fieldError(
          'invalid_request',
          'acknowledgments',
          `must have at most ${acknowledgmentsMax} items`,
        )
      }
      const of = { group, field: 'acknowledgments', request }
      return submitAcks(body.acknowledgments, of, context)
    },
  )
}

async function ackOne(
  ack: AckBody,
  request: FastifyRequest,
  context: BrokerContext,
): Promise<AckResult> {
  const group = groupOf(ack)
  const result = readResult(ack, '', context.limits)
  const [found] = await findAcked([ack], context.leases, () => '')
  if (found === undefined) throw leaseLost()
  refuseForeign(request.principal, [found.message?.partitionId], context.queueOfPartition)
  const item = { ...found, ...readEnding(ack), result }
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw leaseLost()
  logEnded(context, request, ack.transactionId, item, outcome)
  return toAckResult(0, ack.transactionId, outcome)
}

/** Acknowledges everything the lease still holds. */
async function ackLease(
  body: AckLeaseBody,
  group: string | undefined,
  request: FastifyRequest,
  context: BrokerContext,
): Promise<AckResult> {
  const leaseId = leaseUuidOf(body.leaseId)
  if (leaseId === undefined) throw leaseLost()
  const partitionId = decodeLeaseToken(body.leaseId)?.partitionId
  refuseForeign(request.principal, [partitionId], context.queueOfPartition)
  const item = { leaseId, ...readEnding(body) }
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw leaseLost()
  const { deadLettered } = outcome
  const status = item.status ?? 'completed'
  context.deliveryLog?.leaseEnded(leaseId, { status, deadLettered })
  if (deadLettered) context.deadLetterLog.add({ ...whoOf(request), leaseId, status })
  return toAckResult(0, undefined, outcome)
}

/** Where acks come from. `field` is their list in the body. */
export interface AckOrigin {
  readonly group: string | undefined
  readonly field: string
  readonly request: FastifyRequest
}

/**
 * Acknowledges several messages independently of each other. Acks whose message is not found are not sent to
 * the database. Results are in the order of the acks. `field` is their list in the body.
 */
export async function submitAcks(
  acks: readonly Ack[],
  { group, field, request }: AckOrigin,
  context: BrokerContext,
): Promise<AckResult[]> {
  const results = readEach(acks, (ack, i) => readResult(ack, `${field}[${i}]`, context.limits))
  const found = await findAcked(acks, context.leases, (i) => `${field}[${i}]`)
  const partitionIds = found.map((one) => one?.message?.partitionId)
  refuseForeign(request.principal, partitionIds, context.queueOfPartition)
  const read = found.map(
    (one, i) => one && { ...one, ...readEnding(acks[i] as Ack), result: results[i] },
  )
  const items = read.filter((item) => item !== undefined)
  const outcomes =
    items.length === 0 ? [] : await context.sidecar.submit({ kind: 'ACK_BATCH', items, group })
  let next = 0
  return acks.map((ack, index) => {
    const item = read[index]
    if (item === undefined) return toAckResult(index, ack.transactionId, undefined)
    const outcome = outcomes[next]
    next += 1
    logEnded(context, request, ack.transactionId, item, outcome)
    return toAckResult(index, ack.transactionId, outcome)
  })
}

function dropNulls(body: unknown): void {
  const list = (withoutNulls(body) as { acknowledgments?: unknown } | undefined)?.acknowledgments
  if (Array.isArray(list)) for (const ack of list) withoutNulls(ack, 'result')
}

function groupOf({ consumerGroup }: { readonly consumerGroup?: string | undefined }) {
  return consumerGroup === undefined ? undefined : parseConsumerGroup(consumerGroup)
}

type Ending = Pick<Ack, 'status' | 'error' | 'errorCode' | 'delayMs'>

export function readEnding(ending: Ending): Omit<AckItem, 'leaseId'> {
  const { status, error, errorCode, delayMs } = ending
  return {
    status: isCompleted(status) ? 'completed' : (status as AckItem['status']),
    errorMessage: error === undefined ? undefined : storable(error),
    errorCode: errorCode === undefined ? undefined : storable(errorCode),
    delayMs,
  }
}

/** The result of an ack as JSON text. `path` is the place of the ack in the body. */
export function readResult(
  ack: Pick<Ack, 'status' | 'result'>,
  path: string,
  limits: Limits,
): string | undefined {
  if (ack.result === undefined) return undefined
  const field = path === '' ? 'result' : `${path}.result`
  if (!isCompleted(ack.status)) {
    throw fieldError('invalid_request', field, 'is only for completed messages')
  }
  return jsonText(ack, 'result', field, limits.resultBytesMax)
}

function isCompleted(status: Ack['status']): boolean {
  return status === undefined || status === 'completed' || status === 'success'
}

/** Replaces NUL and lone surrogates, which PostgreSQL rejects: an error text must not make its ack fail. */
function storable(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\uFFFD')
}

const leaseLostText = 'lease lost: expired, reassigned or already acknowledged'

export function leaseLost(): RouseError {
  return new RouseError('lease_lost', leaseLostText)
}

function toAckResult(
  index: number,
  transactionId: string | undefined,
  outcome: AckOutcome | undefined,
): AckResult {
  const result = { index, ...(transactionId === undefined ? {} : { transactionId }) }
  if (outcome?.accepted !== true) return { ...result, success: false, error: leaseLostText }
  return { ...result, success: true, ...(outcome.deadLettered ? { dlq: true } : {}) }
}

function whoOf({ id, principal }: FastifyRequest) {
  return { requestId: id, principal: principal.name }
}

export function logEnded(
  context: BrokerContext,
  request: FastifyRequest,
  transactionId: string | undefined,
  item: AckItem,
  outcome: AckOutcome | undefined,
): void {
  const { leaseId, message, status = 'completed', errorCode } = item
  if (outcome?.accepted !== true || message === undefined) return
  const { deadLettered } = outcome
  context.deliveryLog?.ended({ leaseId, ...message, transactionId, status, deadLettered })
  if (context.spans.isExporting) {
    context.spans.acked({ leaseId, ...message }, status, context.clock.wallMs())
  }
  if (!deadLettered) return
  const ids = { leaseId, ...message, transactionId }
  context.deadLetterLog.add({ ...whoOf(request), ...ids, status, errorCode })
}
