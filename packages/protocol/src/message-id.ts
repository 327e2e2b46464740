// The id of a message names its place, so that a node finds the message without an index on ids.
//
// The worker that pushes a message gives it a UUIDv8, which is stored: a UUIDv7 with another version. Partition
// and seq are known when the message is in the log. They replace the random bits:
//
//   48 bits: milliseconds of the push · version 7 · 74 bits: n in 6 bits, the partition id in 68 − n bits,
//   the seq in n bits (n is the number of bits of the seq) · around the variant
//
// Every other id is kept as it is stored, and rouse.message_ids finds it: a message that was scheduled has its
// id before it has a place, and an encrypted payload is bound to its id before it is stored.
// rouse.message_id (migrations/functions/inspect/message_id.sql) does the same in SQL.

export interface MessagePlace {
  readonly partitionId: string
  readonly seq: number
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const versionAt = 14
const placeBits = 68
const low24 = 2 ** 24
const seqPattern = /^[1-9][0-9]{0,15}$/

/** The id that users see. */
export function messageIdAt(storedId: string, partitionId: string, seq: number): string {
  if (!namesPlace(storedId)) return storedId
  const time = storedId.slice(0, versionAt)
  const seqBits = bitsOf(seq)
  const place = Number(partitionId) * 2 ** seqBits + seq
  if (place <= Number.MAX_SAFE_INTEGER) {
    // The common case: the place has at most 53 bits.
    const high = Math.floor(place / low24)
    const top = hex(0x8000 + Math.floor(high / low24), 4)
    return `${time}7${threeHex(seqBits * 64)}-${top}-${sixHex(high % low24)}${sixHex(place % low24)}`
  }
  const bits = (BigInt(partitionId) << BigInt(seqBits)) | BigInt(seq)
  if (bits >> BigInt(placeBits) !== 0n) return withoutPlace(storedId)
  const first = hex(seqBits * 64 + Number(bits >> 62n), 3)
  const rest = (0b10n << 62n) | (bits & ((1n << 62n) - 1n))
  const text = rest.toString(16)
  return `${time}7${first}-${text.slice(0, 4)}-${text.slice(4)}`
}

/** The place that an id names; undefined if it cannot be such an id. The message there may have another id. */
export function placeOfMessageId(id: string): MessagePlace | undefined {
  if (!isUuid(id) || id[versionAt] !== '7') return undefined
  const first = Number.parseInt(id.slice(15, 18), 16)
  const rest = BigInt(`0x${id.slice(19, 23)}${id.slice(24)}`)
  const seqBits = first >> 6
  const bits = (BigInt(first & 63) << 62n) | (rest & ((1n << 62n) - 1n))
  const partitionId = bits >> BigInt(seqBits)
  const seq = Number(bits & ((1n << BigInt(seqBits)) - 1n))
  const isPlace = partitionId > 0n && seq > 0 && bitsOf(seq) === seqBits
  const isInRange = partitionId < 2n ** 63n && seq <= Number.MAX_SAFE_INTEGER
  return isPlace && isInRange ? { partitionId: String(partitionId), seq } : undefined
}

export function isUuid(text: unknown): text is string {
  return typeof text === 'string' && uuidPattern.test(text)
}

/** Whether the public id of the message is derived from its place. */
export function namesPlace(storedId: string): boolean {
  return storedId[versionAt] === '8'
}

/** The time of the push in a UUIDv7 or UUIDv8, in ms since 1970. Undefined for other UUIDs. */
export function timeOfMessageId(id: string): number | undefined {
  if (id[versionAt] !== '7' && id[versionAt] !== '8') return undefined
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/**
 * The time of the push, from the time at which the message entered the log. An id without a place may be older. Others
 * are not parsed: there are many.
 */
export function pushedAtOf(storedId: string, createdAtMs: number): number {
  return namesPlace(storedId) ? createdAtMs : (timeOfMessageId(storedId) ?? createdAtMs)
}

/** The log has the time of promotion for a message that was scheduled. Its id has the time of the push. */
export function pushTime(
  id: string,
  partitionId: string | null,
  seq: number | null,
  storedAt: Date,
): Date {
  const place = placeOfMessageId(id)
  const ms = timeOfMessageId(id)
  const isHere = place?.partitionId === partitionId && place?.seq === seq
  return seq === null || isHere || ms === undefined ? storedAt : new Date(ms)
}

/** The UUIDv7 that a message keeps if it gets its id before its place. */
export function withoutPlace(storedId: string): string {
  return namesPlace(storedId) ? withVersion(storedId, 7) : storedId
}

/** The stored form of a new id. */
export function withPlace(uuidV7: string): string {
  return withVersion(uuidV7, 8)
}

/** Generates ids to be stored with new messages. They increase within this process. */
export function createMessageIds(options: UuidV7Options): () => string {
  const newUuid = createUuidV7(options)
  return () => withPlace(newUuid())
}

function withVersion(id: string, version: 7 | 8): string {
  return `${id.slice(0, versionAt)}${version}${id.slice(versionAt + 1)}`
}

function bitsOf(seq: number): number {
  return seq < 2 ** 32 ? 32 - Math.clz32(seq) : 64 - Math.clz32(Math.floor(seq / 2 ** 32))
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

/** Formatting costs more than all the rest of an id, so three digits at a time are looked up. */
const threeDigits = Array.from({ length: 4096 }, (_, value) => hex(value, 3))

function threeHex(value: number): string {
  return threeDigits[value] as string
}

function sixHex(value: number): string {
  return threeHex(value >> 12) + threeHex(value & 0xfff)
}

/** The transactionId of a message that was pushed without one. It is derived, not stored. A scheduled message
 * is the exception: its transactionId is its message id, which the push returned. */
export function transactionIdFor(partitionId: string, seq: number): string {
  return `${partitionId}-${seq}`
}

/** The seq in a derived transactionId of this partition. Undefined for every other transactionId. */
export function seqOfTransactionId(partitionId: string, transactionId: string): number | undefined {
  if (!transactionId.startsWith(`${partitionId}-`)) return undefined
  const digits = transactionId.slice(partitionId.length + 1)
  if (!seqPattern.test(digits)) return undefined
  const seq = Number(digits)
  return seq <= Number.MAX_SAFE_INTEGER ? seq : undefined
}

/** One of this many messages is in the sample whose timings nodes record. */
export const sampledOneOf = 16
const sampledDigits = 6

/** Whether a message is in the sample. Every process chooses the same ones, because the id decides. */
export function isSampled(id: string): boolean {
  return isChosen(Number.parseInt(id.slice(-sampledDigits), 16))
}

/**
 * The same from the place: an ack does not know the id, whose last digits are the place. An id that does not name
 * its place may be chosen without its ack.
 */
export function isSampledPlace(partitionId: string, seq: number): boolean {
  const seqBits = Math.min(bitsOf(seq), sampledBits)
  const place =
    (Number(BigInt.asUintN(sampledBits, BigInt(partitionId))) << seqBits) | (seq % low24)
  return isChosen((place >>> 0) % low24)
}

const sampledBits = 4 * sampledDigits

/** The product's highest bits depend on all bits of the number: seqs of small partitions are chosen, too. */
function isChosen(lastBits: number): boolean {
  return Math.imul(lastBits, 0x9e3779b1) >>> 28 === 0
}

export interface UuidV7Options {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Fills the whole array, like crypto.getRandomValues. */
  readonly fillRandom: (bytes: Uint8Array<ArrayBuffer>) => void
}

// One call for random bytes serves 256 ids, because the call costs more than the bytes.
const idsPerPool = 256
const bytesPerId = 10
const counterMax = 0xfff

/**
 * UUIDv7 (RFC 9562), strictly increasing per generator: 48 bits of milliseconds, a 12-bit counter (method 1
 * of section 6.2), 62 random bits. Each millisecond the counter starts at a random value in its lower half,
 * so at least 2,048 ids fit. If the counter overflows, or the clock goes back, the generator continues from
 * its last millisecond.
 */
export function createUuidV7({ now, fillRandom }: UuidV7Options): () => string {
  const pool = new Uint8Array(idsPerPool * bytesPerId)
  const view = new DataView(pool.buffer)
  let at = pool.length
  let lastMs = 0
  let counter = 0
  /** The first 48 bits, which ids of the same millisecond share. */
  let time = { ms: 0, text: '' }

  return () => {
    if (at === pool.length) {
      fillRandom(pool)
      at = 0
    }
    const nowMs = Math.floor(now())
    if (nowMs > lastMs) {
      lastMs = nowMs
      counter = view.getUint16(at) >> 5
    } else if (counter < counterMax) {
      counter += 1
    } else {
      lastMs += 1
      counter = view.getUint16(at) >> 5
    }
    if (time.ms !== lastMs) {
      const digits = hex(lastMs, 12)
      time = { ms: lastMs, text: `${digits.slice(0, 8)}-${digits.slice(8)}-7` }
    }
    const variant = 0x8000 | (view.getUint16(at + 2) & 0x3fff)
    let low = ''
    for (let i = at + 4; i < at + bytesPerId; i += 1) low += byteDigits[pool[i] as number] as string
    at += bytesPerId
    return `${time.text}${hex(counter, 3)}-${variant.toString(16)}-${low}`
  }
}

const byteDigits = Array.from({ length: 256 }, (_, value) => hex(value, 2))
