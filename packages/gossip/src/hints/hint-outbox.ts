// Outgoing hints. A hint is sent at once, unless the last flush was a moment ago: then hints are held and
// sent together. Every batch is sent twice, so a loss rate of p becomes p², without timers per peer. The
// second copy is added to the recipient's datagram of the next flush if there is room; otherwise it is sent
// alone a little later. A peer that reports a hint of the batch as settled has the batch, and needs no further
// copy; one that was asked for a report and sends none gets a third copy.

import type { HintBatch } from '../wire/messages.ts'
import { Asks } from './asks.ts'
import type { OutgoingHint } from './hint.ts'
import { type Batch, makeBatch, type Recipient, type Share } from './hint-batch.ts'
import type { BatchCount } from './hint-inbox.ts'
import { batchBytesMax, batchesPerFlushMax, PendingHints, toPending } from './pending-hints.ts'

/** Beyond 5,000 datagrams per second flushes become less frequent. */
const msPerDatagram = 0.2
/** How long other peers are preferred to a peer that left a hint unsettled. */
const passOverMs = 1_000

export interface Parcel<To> {
  readonly to: readonly To[]
  /** All peers get the same content, so the datagram need not name its recipients (recipients.ts). */
  readonly isForAll: boolean
  readonly batches: readonly HintBatch[]
  /** An upper bound for the size of the batches. */
  readonly bytes: number
}

/** The content of one datagram. */
interface Load<To> {
  readonly pieces: { readonly batch: Batch<To>; readonly share: Share }[]
  bytes: number
}

interface OutboxSettings {
  readonly hintHoldMs: number
  readonly rideAfterMs: number
  readonly askMs: number
}

export class HintOutbox<To extends Recipient> {
  readonly #settings: OutboxSettings
  readonly #pending = new PendingHints()
  readonly #asks = new Asks<To>()
  /** All batches from the first one that a recipient needs another copy of. */
  #unsettled: Batch<To>[] = []
  #rideAt = Number.POSITIVE_INFINITY
  #flushAt = Number.POSITIVE_INFINITY
  #flushedAt = Number.NEGATIVE_INFINITY
  #heldUntil = Number.NEGATIVE_INFINITY
  #flushNumber = 0
  /** Whether a peer may know the last batch number. */
  #isNumberKnown = false

  constructor(settings: OutboxSettings) {
    this.#settings = settings
  }

  get nextAt(): number {
    return Math.min(this.#flushAt, this.#rideAt, this.#asks.nextAt)
  }

  /** Every batch up to this number has been sent at least once. */
  get lastBatch(): number {
    return (this.#flushNumber + 1) * batchesPerFlushMax - 1
  }

  /** The counts that let a recipient detect lost batches. */
  countFor(recipient: To): BatchCount {
    this.#isNumberKnown = true
    const [oldest] = this.#unsettled
    const unsettled = this.#unsettled.filter(({ audience }) => audience.has(recipient)).length
    return {
      countedFrom: recipient.countedFrom,
      settledBatch: oldest === undefined ? this.lastBatch : oldest.number - 1,
      batchesSent: recipient.batchesSent - unsettled,
    }
  }

  /** The counts for a peer that becomes a recipient now. */
  countForNewcomer(): BatchCount {
    this.#isNumberKnown = true
    return { countedFrom: this.lastBatch, settledBatch: this.lastBatch, batchesSent: 0 }
  }

  /** Queues a hint that one of the peers wants. Any other hint only uses up batch numbers, so that a node
   * that is just joining notices that it missed hints. */
  add(hint: OutgoingHint, peers: readonly To[], now: number): void {
    const pending = toPending(hint)
    if (peers.some(({ interest }) => interest.wants(pending.route))) {
      this.#pending.add(pending)
      this.#flushAt = Math.min(this.#flushAt, Math.max(now, this.#heldUntil))
    } else if (this.#isNumberKnown) {
      this.#flushNumber += 1
      this.#isNumberKnown = false
    }
  }

  /** A peer reports a hint as settled. Returns true if the peer is known to have all batches sent to it. */
  settled(peer: To, batchNumber: number, askNumber: number): boolean {
    if (!this.#asks.report(peer, batchNumber, askNumber)) return false
    const batch = this.#unsettled.find(({ number }) => number === batchNumber)
    if (batch?.copies.delete(peer)) this.#dropSettled()
    peer.batchesUnconfirmed = Math.max(0, peer.batchesUnconfirmed - 1)
    return peer.batchesUnconfirmed === 0
  }

  /** A peer is silent or gone: the hints that it was asked to settle go to the others. */
  giveUp(peer: To, now: number): void {
    this.#asks.giveUp(peer, now)
  }

  /** Takes the parcels to send now. */
  take(now: number, peers: readonly To[]): Parcel<To>[] {
    const hasUnsettled = this.#addUnsettled(now)
    const isFlush = hasUnsettled || this.#flushAt <= now
    const fresh = isFlush ? this.#flush(now, peers) : []
    const parcels = parcelsOf(this.#load(fresh, now))
    this.#unsettled.push(...fresh)
    this.#dropSettled()
    const sent = parcels.reduce((sum, { to }) => sum + to.length, 0)
    const holdMs = Math.max(this.#settings.hintHoldMs, sent * msPerDatagram)
    this.#heldUntil = Math.max(this.#heldUntil, now + holdMs)
    return parcels
  }

  /** Queues the hints that the chosen peers did not settle in time, for the other peers. */
  #addUnsettled(now: number): boolean {
    const due = this.#asks.takeDue(now)
    for (const { pending, awaited, told } of due) {
      for (const peer of awaited) peer.passedOverUntil = now + passOverMs
      this.#pending.add({ ...pending, route: { ...pending.route, isOneFirst: false, told } })
    }
    return due.length > 0
  }

  #flush(now: number, peers: readonly To[]): Batch<To>[] {
    const { askMs, rideAfterMs } = this.#settings
    const isFrequent = now - this.#flushedAt < askMs
    this.#flushedAt = now
    this.#flushAt = Number.POSITIVE_INFINITY
    this.#flushNumber += 1
    return this.#pending.take().map((pending, part) => {
      const number = this.#flushNumber * batchesPerFlushMax + part
      const mayAsk = !this.#asks.isFull
      const how = { now, askMs, rideAfterMs, isFrequent, mayAsk }
      const batch = makeBatch({ number, pending, peers, ...how })
      this.#asks.add(batch)
      for (const [peer, { hints }] of batch.audience) {
        peer.batchesSent += 1
        peer.batchesUnconfirmed += 1
        peer.hintsSent += hints.length
      }
      return batch
    })
  }

  /** The datagrams for each peer: every new batch, and further copies where there is room or which are due. */
  #load(fresh: readonly Batch<To>[], now: number): Map<To, Load<To>[]> {
    const loads = new Map<To, Load<To>[]>()
    const start = (peer: To, batch: Batch<To>, share: Share) => {
      const load = { pieces: [{ batch, share }], bytes: share.bytes }
      const others = loads.get(peer)
      if (others === undefined) loads.set(peer, [load])
      else others.push(load)
    }
    for (const batch of fresh) {
      for (const [peer, share] of batch.audience) start(peer, batch, share)
    }
    for (const batch of this.#unsettled) {
      const isDue = batch.rideAt <= now
      for (const [peer, left] of batch.copies) {
        const share = batch.audience.get(peer)
        if (share === undefined) continue
        const roomy = loads.get(peer)?.find(({ bytes }) => bytes + share.bytes <= batchBytesMax)
        if (roomy === undefined && !isDue) continue
        if (left === 1) batch.copies.delete(peer)
        else batch.copies.set(peer, left - 1)
        roomy?.pieces.push({ batch, share })
        if (roomy === undefined) start(peer, batch, share)
        else roomy.bytes += share.bytes
      }
      if (isDue) batch.rideAt = now + this.#settings.rideAfterMs
    }
    return loads
  }

  /** A batch without copies counts as settled once all earlier ones are, because a single number
   * (`settledBatch`) reports which batches are settled. */
  #dropSettled(): void {
    const first = this.#unsettled.findIndex(({ copies }) => copies.size > 0)
    this.#unsettled = first === -1 ? [] : this.#unsettled.slice(first)
    this.#rideAt = Number.POSITIVE_INFINITY
    for (const { rideAt, copies } of this.#unsettled) {
      if (copies.size > 0) this.#rideAt = Math.min(this.#rideAt, rideAt)
    }
  }
}

/** Recipients of the same content share a parcel, so it is packed and signed once. */
function parcelsOf<To>(loads: ReadonlyMap<To, readonly Load<To>[]>): Parcel<To>[] {
  const numbers = new Map<Share, number>()
  const parcels = new Map<string, Parcel<To> & { readonly to: To[] }>()
  for (const [peer, list] of loads) {
    for (const { pieces, bytes } of list) {
      const signature = pieces.map(({ share }) => idOf(share, numbers)).join()
      const parcel = parcels.get(signature)
      if (parcel !== undefined) {
        parcel.to.push(peer)
        continue
      }
      const batches = pieces.map(({ batch: { number }, share: { hints } }) => ({ number, hints }))
      const isForAll = pieces.every(({ batch }) => batch.isForAll)
      parcels.set(signature, { to: [peer], isForAll, batches, bytes })
    }
  }
  return [...parcels.values()]
}

function idOf<Item>(item: Item, numbers: Map<Item, number>): number {
  const known = numbers.get(item) ?? numbers.size
  numbers.set(item, known)
  return known
}
