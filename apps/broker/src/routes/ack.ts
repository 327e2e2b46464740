// Acks: of one message, of a list of messages, or of all messages that a lease still holds.
import {
  type Ack,
  type AckBody,
  type AckLeaseBody,
  type AckListBody,
  type AckReceiptBody,
  type AckResult,
  decodeLeaseToken,
  fieldError,
  matchesTransaction,
  parseConsumerGroup,
  RouseError,
} from '@rouse/protocol'
import type { AckOutcome } from '@rouse/sidecar'
import type { AckItem } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'

export function ackRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/ack',
    {
      preValidation: (request, _reply, done) => {
        withoutNulls(request.body)
        done()
      },
    },
    async (request) => [await ackOne(request.body as AckBody | AckReceiptBody, context)],
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
      if (!('acknowledgments' in body)) return [await ackLease(body, group, context)]
      const { acknowledgmentsMax } = context.limits
      if (body.acknowledgments.length > acknowledgmentsMax) {
        throw fieldError(
          'invalid_request',
          'acknowledgments',
          `must be at most ${acknowledgmentsMax}`,
        )
      }
      return submitAcks(body.acknowledgments, group, context)
    },
  )
}

async function ackOne(ack: AckBody | AckReceiptBody, context: BrokerContext): Promise<AckResult> {
  const group = groupOf(ack)
  const item = 'receipt' in ack ? readReceipt(ack) : readAck(ack)
  if (item === undefined) throw leaseLost()
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw leaseLost()
  const transactionId = 'receipt' in ack ? undefined : ack.transactionId
  logEnded(context, transactionId, item, outcome)
  return toAckResult(0, transactionId, outcome)
}

/** Acknowledges everything the lease still holds, by the leaseId of any of its messages. */
async function ackLease(
  body: AckLeaseBody,
  group: string | undefined,
  context: BrokerContext,
): Promise<AckResult> {
  const token = decodeLeaseToken(body.leaseId)
  if (token === undefined) throw leaseLost()
  const item = { leaseId: token.leaseId, ...readEnding(body) }
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw leaseLost()
  const { deadLettered } = outcome
  const status = item.status ?? 'completed'
  context.deliveryLog?.leaseEnded(token.leaseId, { status, deadLettered })
  return toAckResult(0, undefined, outcome)
}

/**
 * Acknowledges several messages independently of each other. Invalid acks are not sent to the database.
 * Results are in the order of the acks.
 */
export async function submitAcks(
  acks: readonly Ack[],
  group: string | undefined,
  context: BrokerContext,
): Promise<AckResult[]> {
  const read = acks.map(readAck)
  const items = read.filter((item) => item !== undefined)
  const outcomes =
    items.length === 0 ? [] : await context.sidecar.submit({ kind: 'ACK_BATCH', items, group })
  let next = 0
  return acks.map((ack, index) => {
    const item = read[index]
    if (item === undefined) return toAckResult(index, ack.transactionId, undefined)
    const outcome = outcomes[next]
    next += 1
    logEnded(context, ack.transactionId, item, outcome)
    return toAckResult(index, ack.transactionId, outcome)
  })
}

function dropNulls(body: unknown): void {
  const list = (withoutNulls(body) as { acknowledgments?: unknown } | undefined)?.acknowledgments
  if (Array.isArray(list)) for (const ack of list) withoutNulls(ack)
}

function groupOf({ consumerGroup }: { readonly consumerGroup?: string | undefined }) {
  return consumerGroup === undefined ? undefined : parseConsumerGroup(consumerGroup)
}

type Ending = Pick<Ack, 'status' | 'error' | 'errorCode' | 'delayMs'>

/** Undefined if transactionId, partitionId and leaseId do not belong together. Checked without a query. */
export function readAck(ack: Ack): AckItem | undefined {
  const token = decodeLeaseToken(ack.leaseId)
  if (token === undefined || token.partitionId !== ack.partitionId) return undefined
  if (!matchesTransaction(token, ack.transactionId)) return undefined
  const message = { partitionId: token.partitionId, seq: token.seq }
  return { leaseId: token.leaseId, message, ...readEnding(ack) }
}

/** The message that a receipt belongs to. Undefined if the receipt is invalid. */
function readReceipt(ack: AckReceiptBody): AckItem | undefined {
  const token = decodeLeaseToken(ack.receipt)
  if (token === undefined) return undefined
  const message = { partitionId: token.partitionId, seq: token.seq }
  return { leaseId: token.leaseId, message, ...readEnding(ack) }
}

export function readEnding(ending: Ending): Omit<AckItem, 'leaseId'> {
  const { status, error, errorCode, delayMs } = ending
  return {
    status: status === undefined || status === 'success' ? 'completed' : status,
    errorMessage: error === undefined ? undefined : storable(error),
    errorCode: errorCode === undefined ? undefined : storable(errorCode),
    delayMs,
  }
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

export function logEnded(
  context: BrokerContext,
  transactionId: string | undefined,
  item: AckItem,
  outcome: AckOutcome | undefined,
): void {
  const { leaseId, message, status = 'completed' } = item
  if (outcome?.accepted !== true || message === undefined) return
  const { deadLettered } = outcome
  context.deliveryLog?.ended({ leaseId, ...message, transactionId, status, deadLettered })
}
