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

/** The acks, each with the lease that holds its message. 409 if one has none or a required lease is lost. */
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

const lookupsMax = 2
const pendingMax = 1_000

/**
 * Looks up leases before a transaction. Lookups bypass the sidecar, so few run at once: hanging ones must not
 * take the connections that messages need.
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
    // Never marked as sent: a lookup changes nothing, so a late one is certain to have had no effect.
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
