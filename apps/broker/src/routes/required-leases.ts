// Existing clients do not name a lease in each ack of a transaction. Instead the request has a list of required
// leases: the transaction is applied only if all of them are live. A required lease is the leaseId of a pop,
// which covers all its messages, in all partitions, or the receipt of one of them, which does the same.
//
// If an ack is for the very message that a receipt names, or there is one required lease and the transactionId
// is derived, the transaction itself checks the lease. For other acks, and for leases without an ack, the
// database is queried before the transaction. The transaction cannot check a lease without acknowledging
// something, so a lease without an ack may still be lost between that query and COMMIT.
import {
  decodeLeaseToken,
  fieldError,
  hashTransactionId,
  type LeaseToken,
  leaseUuidOf,
  type TransactionAck,
  type TransactionAckByIds,
} from '@rouse/protocol'
import type { AckItem, HeldMessage, MessageName } from '@rouse/storage'
import type { LeaseLookups } from '../worker/lease-lookups.ts'
import { leaseLost, readEnding } from './ack.ts'
import {
  type AckedMessage,
  inLease,
  messageOf,
  type NamedMessage,
  nameOf,
  resolve,
} from './acked-messages.ts'

/** An ack of a transaction, and where it is in the body. */
export interface PlacedAck {
  readonly ack: TransactionAck
  readonly path: string
}

/**
 * Adds to each ack the lease that holds its message. Throws if an ack has no lease or a required lease is
 * lost.
 */
export async function fenceAcks(
  acks: readonly PlacedAck[],
  requiredLeases: readonly string[],
  lookups: LeaseLookups,
): Promise<AckItem[]> {
  const leaseIds = [...new Set(requiredLeases.map((lease) => leaseUuidOf(lease) ?? lost()))]
  const receipts = requiredLeases.map(decodeLeaseToken).filter((token) => token !== undefined)
  const byMessage = new Map(receipts.map((token) => [messageKey(token), token]))
  const named = acks.map(({ ack, path }) =>
    isUnfenced(ack) ? byRequired(ack, byMessage, leaseIds) : (nameOf(ack, 0, () => path) ?? lost()),
  )
  const known = await resolve(named, lookups)
  const open = acks.flatMap(({ ack }, i) =>
    isUnfenced(ack) && named[i] === undefined ? [ack] : [],
  )
  const fencing = new Set(known.map((one) => one?.leaseId))
  if (open.length === 0 && leaseIds.every((id) => fencing.has(id))) {
    return acks.map(({ ack }, i) => toItem(known[i] ?? lost(), ack))
  }
  const { live, messages } = await lookups.holdingsOf(leaseIds, open)
  if (leaseIds.some((id) => !live.has(id))) lost()
  const held = groupByName(messages)
  return acks.map(({ ack, path }, i) => {
    const found = known[i] ?? (isUnfenced(ack) ? onlyOne(held.get(nameKey(ack)), path) : undefined)
    return toItem(found ?? lost(), ack)
  })
}

/** Whether the ack has neither a receipt nor a leaseId. */
function isUnfenced(ack: TransactionAck): ack is TransactionAckByIds {
  return !('receipt' in ack) && ack.leaseId === undefined
}

/** By the receipt that names the message, or by the only required lease. Undefined if there are several. */
function byRequired(
  { partitionId, transactionId }: TransactionAckByIds,
  byMessage: ReadonlyMap<string, LeaseToken>,
  leaseIds: readonly string[],
): NamedMessage {
  const transactionHash = hashTransactionId(transactionId)
  const token = byMessage.get(messageKey({ partitionId, transactionHash }))
  if (token !== undefined) return messageOf(token)
  const [leaseId] = leaseIds
  if (leaseId === undefined || leaseIds.length > 1) return undefined
  return inLease({ leaseId, partitionId, transactionId })
}

function toItem(found: AckedMessage, ack: TransactionAck): AckItem {
  return { ...found, ...readEnding(ack) }
}

/**
 * A producer may use an id again after the dedupe window. If a lease holds two messages with the same id, the
 * older one is meant. If two leases hold a message with this id, for example those of two consumer groups, it
 * is not known which is meant.
 */
function onlyOne(same: readonly HeldMessage[] | undefined, path: string): AckedMessage | undefined {
  const first = same?.[0]
  if (same === undefined || first === undefined) return undefined
  if (same.every(({ leaseId }) => leaseId === first.leaseId)) return messageOf(first)
  const reason = 'is missing: several of requiredLeases hold a message with this transactionId'
  throw fieldError('invalid_request', `${path}.leaseId`, reason)
}

function groupByName(messages: readonly HeldMessage[]): Map<string, HeldMessage[]> {
  const groups = new Map<string, HeldMessage[]>()
  for (const message of messages) {
    const key = nameKey(message)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [message])
    else group.push(message)
  }
  return groups
}

function nameKey({ partitionId, transactionId }: MessageName): string {
  return `${partitionId}/${transactionId}`
}

function messageKey(token: Pick<LeaseToken, 'partitionId' | 'transactionHash'>): string {
  return `${token.partitionId}/${token.transactionHash}`
}

function lost(): never {
  throw leaseLost()
}
