// Old clients fence the acks of a transaction with a list of leases beside the operations. For the client a
// pop is one lease: any of its leaseIds covers all its messages, in all its partitions.
//
// A required lease is proved live by an ack that it fences, which the transaction itself checks. If it fences
// no ack, or an ack names another message of its lease, the database is queried first. No SQL function checks
// a lease inside the transaction without ending something, so a lease that fences no ack may still be lost
// between the query and COMMIT.
import {
  decodeLeaseToken,
  hashTransactionId,
  type LeaseToken,
  type TransactionAck,
} from '@rouse/protocol'
import type { AckItem, HeldMessage, Holdings, MessageName } from '@rouse/storage'
import { leaseLost, readAck, readEnding } from './ack.ts'

export type AskHoldings = (
  leaseIds: readonly string[],
  names: readonly MessageName[],
) => Promise<Holdings>

/** The acks, each with the lease that holds its message. 409 if one has none or a required lease is lost. */
export async function fenceAcks(
  acks: readonly TransactionAck[],
  requiredLeases: readonly string[],
  askHoldings: AskHoldings,
): Promise<AckItem[]> {
  const tokens = requiredLeases.map((lease) => decodeLeaseToken(lease) ?? lost())
  const byMessage = new Map(tokens.map((token) => [messageKey(token), token]))
  const known = acks.map((ack) => fenceByToken(ack, byMessage))
  const fencing = new Set(known.map((item) => item?.leaseId))
  const leaseIds = [...new Set(tokens.map((token) => token.leaseId))]
  const open = acks.filter((_, i) => known[i] === undefined)
  if (open.length > 0 || leaseIds.some((id) => !fencing.has(id))) {
    const { live, messages } = await askHoldings(leaseIds, open)
    if (leaseIds.some((id) => !live.has(id))) lost()
    const held = firstByName(messages)
    return acks.map((ack, i) => known[i] ?? fenceByHolding(ack, held))
  }
  return known as AckItem[]
}

/** By its own leaseId, or by the required lease of this message. Undefined if there is neither. */
function fenceByToken(
  ack: TransactionAck,
  byMessage: ReadonlyMap<string, LeaseToken>,
): AckItem | undefined {
  const { leaseId, partitionId, transactionId } = ack
  if (leaseId !== undefined) return readAck({ ...ack, leaseId }) ?? lost()
  const transactionHash = hashTransactionId(transactionId)
  const token = byMessage.get(messageKey({ partitionId, transactionHash }))
  return token === undefined ? undefined : toItem(token, ack)
}

function fenceByHolding(ack: TransactionAck, held: ReadonlyMap<string, HeldMessage>): AckItem {
  return toItem(held.get(nameKey(ack)) ?? lost(), ack)
}

function toItem(
  { leaseId, partitionId, seq }: Pick<HeldMessage, 'leaseId' | 'partitionId' | 'seq'>,
  ack: TransactionAck,
): AckItem {
  return { leaseId, message: { partitionId, seq }, ...readEnding(ack) }
}

/** An id may be used again after the dedup window. Then the older message ends first. */
function firstByName(messages: readonly HeldMessage[]): Map<string, HeldMessage> {
  return new Map(messages.toReversed().map((message) => [nameKey(message), message]))
}

function messageKey(token: Pick<LeaseToken, 'partitionId' | 'transactionHash'>): string {
  return `${token.partitionId}/${token.transactionHash}`
}

function nameKey({ partitionId, transactionId }: MessageName): string {
  return `${partitionId}/${transactionId}`
}

function lost(): never {
  throw leaseLost()
}
