// Lease ids, and the receipts of leased messages.
//
// All messages of one pop share its `leaseId`, the UUID of the lease. Each has a `receipt` of its own. For
// clients it is opaque. For a node it identifies the lease and the message, so an ack needs no lookup:
//
//   lease uuid 16 bytes · partition id 8 · seq 8 · hash of the transaction id 4    = 36 bytes
//
// in base64url: 48 characters without padding, so every token has exactly one spelling. A token is neither
// secret nor signed: the database checks the random uuid of the lease.
//
// 0.1.0 had no receipts: its `leaseId` was the token. So a `leaseId` may be a token, too.

export interface LeasedMessageName {
  readonly leaseId: string
  readonly partitionId: string
  readonly seq: number
  readonly transactionId: string
}

export interface LeaseToken {
  readonly leaseId: string
  readonly partitionId: string
  readonly seq: number
  readonly transactionHash: number
}

const tokenBytes = 36
const tokenPattern = /^[A-Za-z0-9_-]{48}$/
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const partitionIdPattern = /^[1-9][0-9]{0,18}$/
const int64Max = 2n ** 63n - 1n

/** Holds one token while it is encoded or decoded; both are synchronous. */
const scratch = new DataView(new ArrayBuffer(tokenBytes))

export function encodeLeaseToken({
  leaseId,
  partitionId,
  seq,
  transactionId,
}: LeasedMessageName): string {
  return leaseTokens(leaseId, partitionId)(seq, transactionId)
}

/** Encodes the tokens of one lease in one partition. What they have in common is encoded once. */
export function leaseTokens(
  leaseId: string,
  partitionId: string,
): (seq: number, transactionId: string) => string {
  if (!uuidPattern.test(leaseId)) throw new TypeError(`not a UUID: ${leaseId}`)
  scratch.setUint32(0, Number.parseInt(leaseId.slice(0, 8), 16))
  scratch.setUint32(4, Number.parseInt(leaseId.slice(9, 13) + leaseId.slice(14, 18), 16))
  scratch.setUint32(8, Number.parseInt(leaseId.slice(19, 23) + leaseId.slice(24, 28), 16))
  scratch.setUint32(12, Number.parseInt(leaseId.slice(28), 16))
  scratch.setBigUint64(16, BigInt(partitionId))
  const common = scratchToBase64url(0, 24)
  return (seq, transactionId) => {
    scratch.setUint32(24, Math.floor(seq / 2 ** 32))
    scratch.setUint32(28, seq >>> 0)
    scratch.setUint32(32, hashTransactionId(transactionId))
    return common + scratchToBase64url(24, tokenBytes)
  }
}

/** Undefined for anything that `encodeLeaseToken` cannot have produced. */
export function decodeLeaseToken(text: unknown): LeaseToken | undefined {
  if (typeof text !== 'string' || !tokenPattern.test(text)) return undefined
  base64urlToScratch(text)
  const partitionId = scratch.getBigUint64(16)
  const seq = scratch.getUint32(24) * 2 ** 32 + scratch.getUint32(28)
  if (partitionId > int64Max || seq > Number.MAX_SAFE_INTEGER) return undefined
  const [a, b, c, d] = [hexAt(0), hexAt(4), hexAt(8), hexAt(12)]
  return {
    leaseId: `${a}-${b.slice(0, 4)}-${b.slice(4)}-${c.slice(0, 4)}-${c.slice(4)}${d}`,
    partitionId: partitionId.toString(),
    seq,
    transactionHash: scratch.getUint32(32),
  }
}

/** Whether the transactionId of an ack matches the message of the token. */
export function matchesTransaction(token: LeaseToken, transactionId: string): boolean {
  return token.transactionHash === hashTransactionId(transactionId)
}

/** Whether the text is the `leaseId` of a pop: the UUID of a lease. */
export function isLeaseUuid(text: unknown): text is string {
  return typeof text === 'string' && uuidPattern.test(text)
}

/** The UUID of the lease that a `leaseId` or a receipt names. Undefined if it is neither. */
export function leaseUuidOf(text: unknown): string | undefined {
  return isLeaseUuid(text) ? text : decodeLeaseToken(text)?.leaseId
}

export function isPartitionId(text: string): boolean {
  return partitionIdPattern.test(text) && BigInt(text) <= int64Max
}

/** FNV-1a, 32 bit, over UTF-16 code units, low byte first. */
export function hashTransactionId(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >> 8), 0x01000193)
  }
  return hash >>> 0
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const valueOf = Uint8Array.from({ length: 128 }, (_, code) =>
  Math.max(0, alphabet.indexOf(String.fromCharCode(code))),
)

/** The two characters of every 12 bits. */
const pairs = Array.from(
  { length: 4096 },
  (_, bits) => alphabet.charAt(bits >> 6) + alphabet.charAt(bits & 63),
)

// Hand-written, because browsers have no Buffer and Node 20 has no Uint8Array.toBase64. Three bytes make four
// characters, and both bounds are multiples of three.
function scratchToBase64url(from: number, to: number): string {
  let text = ''
  for (let i = from; i < to; i += 3) {
    const three = (scratch.getUint16(i) << 8) | scratch.getUint8(i + 2)
    text += (pairs[three >> 12] as string) + (pairs[three & 0xfff] as string)
  }
  return text
}

function base64urlToScratch(text: string): void {
  for (let i = 0, at = 0; at < tokenBytes; i += 4, at += 3) {
    const high = (valueAt(text, i) << 6) | valueAt(text, i + 1)
    const low = (valueAt(text, i + 2) << 6) | valueAt(text, i + 3)
    scratch.setUint16(at, (high << 4) | (low >> 8))
    scratch.setUint8(at + 2, low & 0xff)
  }
}

function valueAt(text: string, at: number): number {
  return valueOf[text.charCodeAt(at)] ?? 0
}

function hexAt(at: number): string {
  return scratch.getUint32(at).toString(16).padStart(8, '0')
}
