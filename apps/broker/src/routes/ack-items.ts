import {
  type Ack,
  type AckReceiptBody,
  type AckResult,
  decodeLeaseToken,
  matchesTransaction,
} from '@rouse/protocol'
import type { AckOutcome } from '@rouse/sidecar'
import type { AckItem } from '@rouse/storage'
import type { BrokerContext } from '../worker/context.ts'

type Ending = Pick<Ack, 'status' | 'error' | 'errorCode' | 'delayMs'>

/** Undefined if transactionId, partitionId and leaseId do not name one delivered message. Saves a query. */
export function readAck(ack: Ack): AckItem | undefined {
  const token = decodeLeaseToken(ack.leaseId)
  if (token === undefined || token.partitionId !== ack.partitionId) return undefined
  if (!matchesTransaction(token, ack.transactionId)) return undefined
  const message = { partitionId: token.partitionId, seq: token.seq }
  return { leaseId: token.leaseId, message, ...readEnding(ack) }
}

/** The message that a receipt belongs to. Undefined if the receipt is invalid. */
export function readReceipt(ack: AckReceiptBody): AckItem | undefined {
  const token = decodeLeaseToken(ack.receipt)
  if (token === undefined) return undefined
  const message = { partitionId: token.partitionId, seq: token.seq }
  return { leaseId: token.leaseId, message, ...readEnding(ack) }
}

export function readEnding({
  status,
  error,
  errorCode,
  delayMs,
}: Ending): Omit<AckItem, 'leaseId'> {
  return {
    status: status ?? 'completed',
    errorMessage: error === undefined ? undefined : storable(error),
    errorCode: errorCode === undefined ? undefined : storable(errorCode),
    delayMs,
  }
}

/** PostgreSQL text holds neither NUL nor half a surrogate pair, and an error's text must not fail its ack. */
function storable(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\uFFFD')
}

export const leaseLostText = 'lease lost: expired, reassigned or already acknowledged'

/**
 * Acknowledges many messages independently. Invalid ones never reach the database. Results keep the order.
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

export function toAckResult(
  index: number,
  transactionId: string,
  outcome: AckOutcome | undefined,
): AckResult {
  if (outcome?.accepted !== true)
    return { index, transactionId, success: false, error: leaseLostText }
  return { index, transactionId, success: true, ...(outcome.deadLettered ? { dlq: true } : {}) }
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
