// Outgoing hints. A hint is sent at once, unless the last flush was a moment ago: then hints are held and
// sent together. Every batch is sent twice. The second copy is added to a datagram of the next flush if there
// is room; otherwise it is sent alone a little later. So a loss rate of p becomes p², without
// acknowledgements or timers per peer.

import type { PeerInterest } from '../interest/peer-interest.ts'
import type { HintBatch } from '../wire/messages.ts'
import type { OutgoingHint } from './hint.ts'
import type { BatchCount } from './hint-inbox.ts'
import {
  batchBytesMax,
  batchesPerFlushMax,
  type PendingHint,
  PendingHints,
} from './pending-hints.ts'

/** Beyond 5,000 datagrams per second flushes become less frequent. */
const msPerDatagram = 0.2
const batchOverheadBytes = 16

export interface Recipient {
  readonly interest: PeerInterest
  hintsSent: number
  batchesSent: number
  /** The last batch before this peer became a recipient. */
  readonly countedFrom: number
}

export interface Parcel<To> {
  readonly to: readonly To[]
  /** All recipients get the same content, so the datagram need not name them (recipients.ts). */
  readonly isForAll: boolean
  readonly batches: readonly HintBatch[]
}

interface Batch<To> {
  readonly number: number
  readonly bytes: number
  readonly rideAt: number
  /** Every recipient gets the whole batch. */
  readonly isForAll: boolean
  /** The hints that each recipient got in the first copy. Equal lists are the same object. */
  readonly audience: Map<To, PendingHint[]>
}

interface OutboxSettings {
  readonly hintHoldMs: number
  readonly rideAfterMs: number
}

export class HintOutbox<To extends Recipient> {
  readonly #settings: OutboxSettings
  readonly #pending = new PendingHints()
  /** Batches that have been sent once and wait for their second copy, oldest first. */
  #rides: Batch<To>[] = []
  #flushAt = Number.POSITIVE_INFINITY
  #heldUntil = Number.NEGATIVE_INFINITY
  #flushNumber = 0

  constructor(settings: OutboxSettings) {
    this.#settings = settings
  }

  get nextAt(): number {
    return Math.min(this.#flushAt, this.#rides[0]?.rideAt ?? Number.POSITIVE_INFINITY)
  }

  /** Every batch up to this number has been sent at least once. */
  get lastBatch(): number {
    return (this.#flushNumber + 1) * batchesPerFlushMax - 1
  }

  /** The counts that let a recipient detect lost batches. */
  countFor(recipient: To): BatchCount {
    const [oldest] = this.#rides
    const unsettled = this.#rides.filter(({ audience }) => audience.has(recipient)).length
    return {
      countedFrom: recipient.countedFrom,
      settledBatch: oldest === undefined ? this.lastBatch : oldest.number - 1,
      batchesSent: recipient.batchesSent - unsettled,
    }
  }

  /** The counts for a peer that becomes a recipient now. */
  countForNewcomer(): BatchCount {
    return { countedFrom: this.lastBatch, settledBatch: this.lastBatch, batchesSent: 0 }
  }

  /** Counts a hint that is not sent because there are no peers. The hint still uses up batch numbers. */
  skip(): void {
    this.#flushNumber += 1
  }

  add(hint: OutgoingHint, now: number): void {
    this.#pending.add(hint)
    this.#flushAt = Math.min(this.#flushAt, Math.max(now, this.#heldUntil))
  }

  /** Takes the parcels to send now. `toEveryone` ignores the recipients' interest. */
  take(now: number, recipients: Iterable<To>, toEveryone: boolean): Parcel<To>[] {
    const isFlush = this.#flushAt <= now
    const fresh = isFlush ? this.#flush(now, Array.from(recipients), toEveryone) : []
    const datagrams = this.#withRides(fresh, now)
    const parcels = datagrams.flatMap((batches) => parcelsOf(batches))
    const sent = parcels.reduce((sum, { to }) => sum + to.length, 0)
    const holdMs = Math.max(this.#settings.hintHoldMs, sent * msPerDatagram)
    this.#heldUntil = Math.max(this.#heldUntil, now + holdMs)
    if (isFlush) this.#flushAt = Number.POSITIVE_INFINITY
    return parcels
  }

  #flush(now: number, recipients: readonly To[], toEveryone: boolean): Batch<To>[] {
    this.#flushNumber += 1
    return this.#pending.take().map((hints, part) => {
      const audience = audienceOf(hints, recipients, toEveryone)
      for (const [recipient, list] of audience) {
        recipient.batchesSent += 1
        recipient.hintsSent += list.length
      }
      return {
        number: this.#flushNumber * batchesPerFlushMax + part,
        bytes: hints.reduce((sum, { bytes }) => sum + bytes, batchOverheadBytes),
        rideAt: now + this.#settings.rideAfterMs,
        isForAll: toEveryone || isWhole(audience, recipients),
        audience,
      }
    })
  }

  /** One list of batches per datagram: every new batch, and second copies where there is room. Batches stay
   * in order, because a single number (`settledBatch`) reports which batches are settled. */
  #withRides(fresh: Batch<To>[], now: number): Batch<To>[][] {
    const datagrams = fresh.map((batch) => ({ batches: [batch], bytes: batch.bytes }))
    const staying: Batch<To>[] = []
    for (const ride of this.#rides) {
      const mayRide = staying.length === 0
      const roomy = datagrams.find(({ bytes }) => mayRide && bytes + ride.bytes <= batchBytesMax)
      if (roomy !== undefined) {
        roomy.batches.push(ride)
        roomy.bytes += ride.bytes
      } else if (ride.rideAt <= now) {
        datagrams.push({ batches: [ride], bytes: ride.bytes })
      } else {
        staying.push(ride)
      }
    }
    this.#rides = [...staying, ...fresh.filter(({ audience }) => audience.size > 0)]
    return datagrams.map(({ batches }) => batches)
  }
}

function audienceOf<To extends Recipient>(
  hints: PendingHint[],
  recipients: readonly To[],
  toEveryone: boolean,
): Map<To, PendingHint[]> {
  const audience = new Map<To, PendingHint[]>()
  const lists = new Map<string, PendingHint[]>()
  const hashes = hints.map((hint) => hint.hashes && [...hint.hashes])
  for (const recipient of recipients) {
    const wanted = toEveryone
      ? hints
      : hints.filter((_, index) => recipient.interest.wants(hashes[index]))
    if (wanted.length === 0) continue
    const signature = toEveryone ? '' : wanted.map((hint) => hints.indexOf(hint)).join()
    const list = lists.get(signature) ?? wanted
    lists.set(signature, list)
    audience.set(recipient, list)
  }
  return audience
}

function isWhole<To>(audience: Map<To, PendingHint[]>, recipients: readonly To[]): boolean {
  return audience.size === recipients.length && new Set(audience.values()).size === 1
}

/** Recipients of the same content share a parcel, so it is packed and signed once. */
function parcelsOf<To>(batches: readonly Batch<To>[]): Parcel<To>[] {
  const numbers = new Map<PendingHint[], number>()
  const parcels = new Map<string, Parcel<To> & { readonly to: To[] }>()
  for (const recipient of new Set(batches.flatMap(({ audience }) => [...audience.keys()]))) {
    const parts = batches.flatMap(({ number, isForAll, audience }) => {
      const list = audience.get(recipient)
      return list === undefined ? [] : [{ number, isForAll, list }]
    })
    const signature = parts.map(({ number, list }) => `${number}:${idOf(list, numbers)}`).join()
    const parcel = parcels.get(signature)
    if (parcel !== undefined) {
      parcel.to.push(recipient)
      continue
    }
    const content = parts.map(({ number, list }) => ({
      number,
      hints: list.map(({ hint }) => hint),
    }))
    const isForAll = parts.every((part) => part.isForAll)
    parcels.set(signature, { to: [recipient], isForAll, batches: content })
  }
  return [...parcels.values()]
}

function idOf<Item>(item: Item, numbers: Map<Item, number>): number {
  const known = numbers.get(item) ?? numbers.size
  numbers.set(item, known)
  return known
}
