// One batch of a flush. It says which hints each recipient gets. Some hints go to a few chosen peers first,
// and to the others only if the chosen peers do not settle them.
import type { PeerInterest } from '../interest/peer-interest.ts'
import type { Ask } from './asks.ts'
import { type Choosable, choosePeers } from './chosen-peers.ts'
import type { SentHint } from './hint.ts'
import type { PendingHint } from './pending-hints.ts'

export interface Recipient extends Choosable {
  readonly interest: PeerInterest
  hintsSent: number
  batchesSent: number
  /** Batches since the last one that the peer confirmed by a report. */
  batchesUnconfirmed: number
  /** The last batch before this peer became a recipient. */
  readonly countedFrom: number
}

/** The hints of a batch that a recipient gets. Recipients of the same hints share the object. */
export interface Share {
  readonly hints: readonly SentHint[]
  readonly bytes: number
}

export interface Batch<To> {
  readonly number: number
  /** When the next copy is sent at the latest. */
  rideAt: number
  /** Every peer gets the whole batch. */
  readonly isForAll: boolean
  readonly audience: ReadonlyMap<To, Share>
  /** The recipients that need further copies, and how many. */
  readonly copies: Map<To, number>
  readonly asks: ReadonlyMap<number, Ask<To>>
}

export interface BatchOptions<To> {
  readonly number: number
  readonly pending: readonly PendingHint[]
  readonly peers: readonly To[]
  readonly now: number
  readonly askMs: number
  readonly rideAfterMs: number
  /** Whether another flush may soon take the second copy along. */
  readonly isFrequent: boolean
  /** If not, every interested peer gets each hint at once. */
  readonly mayAsk: boolean
}

const batchOverheadBytes = 16
/** A peer that was asked and does not report gets two more copies, because its waiters are the only ones
 * that know of the messages: if 30 % of all datagrams are lost, all three are lost in 3 of 100 cases. */
const copiesIfAsked = 2
/** Limits how long a peer with a very long round trip, for example after a stall, delays the others. */
const askRttMsMax = 100

export function makeBatch<To extends Recipient>(options: BatchOptions<To>): Batch<To> {
  const { number, pending, peers, now, askMs, rideAfterMs, isFrequent, mayAsk } = options
  const hints: SentHint[] = pending.map(({ hint }) => hint)
  const asks = new Map<number, Ask<To>>()
  const indexes = new Map<To, number[]>()
  let settledAt = now
  let isOneFirst = true
  let isDoubtful = false
  for (const [index, one] of pending.entries()) {
    const { told, chosen, isComplete } = divide(one, peers, now, mayAsk)
    for (const peer of told) {
      const list = indexes.get(peer)
      if (list === undefined) indexes.set(peer, [index])
      else list.push(index)
    }
    isOneFirst &&= chosen.size > 0
    isDoubtful ||= someOf(chosen, ({ passedOverUntil }) => passedOverUntil > now)
    const dueAt = now + askMs + longestRttMs(chosen)
    settledAt = Math.max(settledAt, dueAt)
    // If all interested peers have the hint, a report only saves the second copy, which costs no datagram
    // while hints are frequent.
    if (chosen.size === 0 || (isComplete && isFrequent)) continue
    hints[index] = { ...one.hint, ask: index }
    asks.set(index, { pending: one, awaited: chosen, told: new Set(told), dueAt })
  }
  const audience = sharesOf(indexes, hints, pending)
  const isWhole = audience.size === peers.length && new Set(audience.values()).size === 1
  const copies = isOneFirst && asks.size > 0 ? copiesIfAsked : 1
  return {
    number,
    // If a chosen peer has just left a hint unsettled, datagrams may be lost: the copy does not wait for its
    // report.
    rideAt: isOneFirst && !isDoubtful ? settledAt : now + rideAfterMs,
    isForAll: isWhole,
    audience,
    copies: new Map([...audience.keys()].map((peer) => [peer, copies])),
    asks,
  }
}

interface Division<To> {
  /** The peers that get the hint now. */
  readonly told: readonly To[]
  /** Those of them that are asked to settle it. */
  readonly chosen: Set<To>
  /** No other peer is interested. */
  readonly isComplete: boolean
}

function divide<To extends Recipient>(
  { route }: PendingHint,
  peers: readonly To[],
  now: number,
  mayAsk: boolean,
): Division<To> {
  const told: To[] = []
  const interested = new Map<To, readonly number[]>()
  for (const peer of peers) {
    if (route.told.has(peer)) continue
    const groups = peer.interest.groupsFor(route)
    if (groups.length === 0) continue
    if (groups === 'any' || !route.isOneFirst || !mayAsk) told.push(peer)
    else interested.set(peer, groups)
  }
  const chosen = choosePeers(interested, now)
  return {
    told: [...told, ...chosen],
    chosen,
    isComplete: chosen.size === interested.size,
  }
}

function someOf<Item>(items: ReadonlySet<Item>, matches: (item: Item) => boolean): boolean {
  for (const item of items) if (matches(item)) return true
  return false
}

function longestRttMs(peers: ReadonlySet<Recipient>): number {
  let longest = 0
  for (const { rttMs = 0 } of peers) longest = Math.max(longest, rttMs)
  return Math.min(longest, askRttMsMax)
}

function sharesOf<To>(
  indexes: ReadonlyMap<To, readonly number[]>,
  hints: readonly SentHint[],
  pending: readonly PendingHint[],
): Map<To, Share> {
  const shares = new Map<string, Share>()
  const audience = new Map<To, Share>()
  for (const [peer, list] of indexes) {
    const signature = list.join()
    let share = shares.get(signature)
    if (share === undefined) {
      const bytes = list.reduce((sum, i) => sum + (pending[i]?.bytes ?? 0), batchOverheadBytes)
      share = { hints: list.flatMap((i) => hints[i] ?? []), bytes }
      shares.set(signature, share)
    }
    audience.set(peer, share)
  }
  return audience
}
