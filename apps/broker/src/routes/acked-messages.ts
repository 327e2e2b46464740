// Which message an ack means. A receipt names it, and so does a derived transactionId inside a lease: neither
// needs a query. A stored transactionId is looked up among the messages that the lease holds.
import {
  type Ack,
  type AckByIds,
  decodeLeaseToken,
  fieldError,
  isLeaseUuid,
  isPartitionId,
  type LeaseToken,
  matchesTransaction,
  seqOfTransactionId,
} from '@rouse/protocol'
import type { AckItem, HeldName } from '@rouse/storage'
import { heldKey, type LeaseLookups } from '../worker/lease-lookups.ts'

/** One message under one lease. */
export type AckedMessage = Pick<AckItem, 'leaseId'> & Required<Pick<AckItem, 'message'>>

/** The message of an ack, a name to look it up by, or undefined if the ids of the ack are not valid. */
export type NamedMessage = AckedMessage | HeldName | undefined

/**
 * Returns the message of each ack, or undefined if the ids of the ack do not belong together or the lease
 * does not hold the message. `pathOf` names an ack in errors.
 */
export async function findAcked(
  acks: readonly Ack[],
  lookups: Pick<LeaseLookups, 'seqsOf'>,
  pathOf: (index: number) => string,
): Promise<(AckedMessage | undefined)[]> {
  return resolve(
    acks.map((ack, i) => nameOf(ack, i, pathOf)),
    lookups,
  )
}

export async function resolve(
  named: readonly NamedMessage[],
  lookups: Pick<LeaseLookups, 'seqsOf'>,
): Promise<(AckedMessage | undefined)[]> {
  const open = named.filter((one): one is HeldName => one !== undefined && !isFound(one))
  if (open.length === 0) return named as (AckedMessage | undefined)[]
  const seqs = await lookups.seqsOf(open)
  return named.map((one) => {
    if (one === undefined || isFound(one)) return one
    const seq = seqs.get(heldKey(one))
    return seq === undefined ? undefined : messageAt(one, seq)
  })
}

function isFound(one: AckedMessage | HeldName): one is AckedMessage {
  return 'message' in one
}

export function nameOf(ack: Ack, index: number, pathOf: (index: number) => string): NamedMessage {
  if (!('receipt' in ack)) return byIds(ack)
  const token = decodeLeaseToken(ack.receipt)
  if (token === undefined && isLeaseUuid(ack.receipt)) throw notAReceipt(pathOf(index))
  return token === undefined ? undefined : messageOf(token)
}

function notAReceipt(path: string): Error {
  const field = path === '' ? 'receipt' : `${path}.receipt`
  return fieldError('invalid_request', field, 'is a leaseId: send the receipt of the message')
}

function byIds({ leaseId, partitionId, transactionId }: AckByIds): NamedMessage {
  if (isLeaseUuid(leaseId)) return inLease({ leaseId, partitionId, transactionId })
  const token = decodeLeaseToken(leaseId)
  if (token === undefined || token.partitionId !== partitionId) return undefined
  return matchesTransaction(token, transactionId) ? messageOf(token) : undefined
}

/**
 * The message with this transactionId in the lease. A pop gives a message no shared leaseId if its stored
 * transactionId looks like the derived one of another message, so a derived one needs no check.
 */
export function inLease(name: HeldName): NamedMessage {
  const { partitionId, transactionId } = name
  if (!isPartitionId(partitionId)) return undefined
  const seq = seqOfTransactionId(partitionId, transactionId)
  return seq === undefined ? name : messageAt(name, seq)
}

export function messageOf({
  leaseId,
  partitionId,
  seq,
}: Pick<LeaseToken, 'leaseId' | 'partitionId' | 'seq'>): AckedMessage {
  return { leaseId, message: { partitionId, seq } }
}

function messageAt({ leaseId, partitionId }: HeldName, seq: number): AckedMessage {
  return { leaseId, message: { partitionId, seq } }
}
