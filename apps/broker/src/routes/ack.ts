// Acks: of one message, of a list of messages, or of all messages that a lease still holds.
import {
  type Ack,
  type AckBody,
  type AckLeaseBody,
  type AckListBody,
  type AckResult,
  fieldError,
  leaseUuidOf,
  parseConsumerGroup,
  RouseError,
} from '@rouse/protocol'
import type { AckOutcome } from '@rouse/sidecar'
import type { AckItem } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'
import { findAcked } from './acked-messages.ts'

export function ackRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/ack',
    {
      preValidation: (request, _reply, done) => {
        withoutNulls(request.body)
        done()
      },
    },
    async (request) => [await ackOne(request.body as AckBody, context)],
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
      return submitAcks(body.acknowledgments, { group, field: 'acknowledgments' }, context)
    },
  )
}

async function ackOne(ack: AckBody, context: BrokerContext): Promise<AckResult> {
  const group = groupOf(ack)
  const [found] = await findAcked([ack], context.leases, () => '')
  if (found === undefined) throw leaseLost()
  const item = { ...found, ...readEnding(ack) }
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw leaseLost()
  logEnded(context, ack.transactionId, item, outcome)
  return toAckResult(0, ack.transactionId, outcome)
}

/** Acknowledges everything the lease still holds. */
async function ackLease(
  body: AckLeaseBody,
  group: string | undefined,
  context: BrokerContext,
): Promise<AckResult> {
  const leaseId = leaseUuidOf(body.leaseId)
  if (leaseId === undefined) throw leaseLost()
  const item = { leaseId, ...readEnding(body) }
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw leaseLost()
  const { deadLettered } = outcome
  const status = item.status ?? 'completed'
  context.deliveryLog?.leaseEnded(leaseId, { status, deadLettered })
  return toAckResult(0, undefined, outcome)
}

/**
 * Acknowledges several messages independently of each other. Acks whose message is not found are not sent to
 * the database. Results are in the order of the acks. `field` is their list in the body.
 */
export async function submitAcks(
  acks: readonly Ack[],
  { group, field }: { readonly group: string | undefined; readonly field: string },
  context: BrokerContext,
): Promise<AckResult[]> {
  const found = await findAcked(acks, context.leases, (i) => `${field}[${i}]`)
  const read = found.map((one, i) => one && { ...one, ...readEnding(acks[i] as Ack) })
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
