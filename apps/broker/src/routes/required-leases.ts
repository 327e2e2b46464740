// Old clients do not name a lease in each ack of a transaction. Instead the request has a list of required
// leases: the transaction is applied only if all of them are live. For such a client a pop is one lease: any
// leaseId of the pop covers all its messages, in all partitions.
//
// If an ack is for the very message that a required lease names, the transaction itself checks the lease. For
// other acks, and for leases without an ack, the database is queried before the transaction. The transaction
// cannot check a lease without acknowledging something, so a lease without an ack may still be lost between
// that query and COMMIT.
import {
  decodeLeaseToken,
  hashTransactionId,
  type LeaseToken,
  RouseError,
  type TransactionAck,
} from '@rouse/protocol'
import { WriteQueue } from '@rouse/sidecar'
import {
  type AckItem,
  type HeldMessage,
  type Holdings,
  holdingsOf,
  type MessageName,
} from '@rouse/storage'
import { runAdminQuery } from '../http/admin-query.ts'
import { toRouseError } from '../http/errors.ts'
import type { BrokerContext } from '../worker/context.ts'
import { leaseLost, readAck, readEnding } from './ack.ts'

export type LeaseLookup = (
  leaseIds: readonly string[],
  names: readonly MessageName[],
) => Promise<Holdings>

/**
 * Adds to each ack the lease that holds its message. Throws if an ack has no lease or a required lease is
 * lost.
 */
export async function fenceAcks(
  acks: readonly TransactionAck[],
  requiredLeases: readonly string[],
  lookUp: LeaseLookup,
): Promise<AckItem[]> {
  const tokens = requiredLeases.map((lease) => decodeLeaseToken(lease) ?? lost())
  const byMessage = new Map(tokens.map((token) => [messageKey(token), token]))
  const known = acks.map((ack) => fenceByToken(ack, byMessage))
  const fencing = new Set(known.map((item) => item?.leaseId))
  const leaseIds = [...new Set(tokens.map((token) => token.leaseId))]
  const open = acks.filter((_, i) => known[i] === undefined)
  if (open.length > 0 || leaseIds.some((id) => !fencing.has(id))) {
    const { live, messages } = await lookUp(leaseIds, open)
    if (leaseIds.some((id) => !live.has(id))) lost()
    const held = firstByName(messages)
    return acks.map((ack, i) => known[i] ?? fenceByHolding(ack, held))
  }
  return known as AckItem[]
}

/** Uses the ack's own leaseId, or the required lease that names its message. Undefined if it has neither. */
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

/**
 * A producer may use an id again after the dedupe window. If two messages have the same id, the older message
 * is used.
 */
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

const lookupsMax = 2
const pendingMax = 1_000

/**
 * Looks up leases before a transaction. Lookups bypass the sidecar. Only a few run at once, so that hanging
 * lookups do not take the connections that pushes, pops and acks need.
 */
export function createLeaseLookup({ pool, config }: BrokerContext): LeaseLookup {
  const limits = { timeoutMs: config.writeTimeoutMs }
  const queue = new WriteQueue<Parameters<LeaseLookup>, Holdings>({
    slots: lookupsMax,
    patienceMs: 0,
    pendingMax,
    countMax: 1,
    bytesMax: 0,
    ...limits,
    // Does not call `send()`: a lookup changes nothing, so a timeout leaves no unknown outcome.
    async run([lookup]) {
      if (lookup === undefined) return
      const [leaseIds, names] = lookup.input
      try {
        lookup.resolve(await runAdminQuery(pool, () => holdingsOf(pool, leaseIds, names, limits)))
      } catch (error) {
        lookup.reject(nothingHappened(error))
      }
    },
  })
  return (leaseIds, names) => queue.submit([leaseIds, names])
}

/** A lookup changes nothing, so its outcome is never unknown. */
function nothingHappened(error: unknown): RouseError {
  const known = toRouseError(error)
  if (known.code !== 'outcome_unknown') return known
  return new RouseError('database_unavailable', undefined, { cause: error })
}
