// The secrets of a cluster, three at most. The first signs, all verify. To rotate the secret of a running
// cluster, give every node `[old, new]`, then every node `[new, old]`, then every node `[new]`.
//
// A secret is any text of 16 characters or more; `openssl rand -base64 32` makes a good one. The key id on
// the wire is derived from the secret, so there are no ids to assign.
import { hash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { GossipConfigError } from '../gossip-config-error.ts'
import { acceptedBytesMax, type Signer, tagBytes } from './frame.ts'

export const secretsMax = 3
export const secretLengthMin = 16

/** Used if there are no secrets, which is allowed only on loopback. It separates such a cluster from every
 * cluster with secrets. */
const openSecret = 'no secret: anybody on this machine may speak'

interface Key {
  readonly id: number
  /** HMAC-SHA256 hashes an inner pad followed by the data, then an outer pad followed by that hash. The pads
   * are derived from the key once and stay at the start of these buffers. */
  readonly inner: Buffer
  readonly outer: Buffer
  verified: number
}

const blockBytes = 64
const hashBytes = 32

export class KeyRing implements Signer {
  readonly #clusterId: string
  #keys: readonly Key[] = []

  constructor(clusterId: string, secrets: readonly string[]) {
    this.#clusterId = clusterId
    this.#keys = this.#derive(secrets)
  }

  /** Takes effect with the next datagram. Throws, and changes nothing, if the secrets are not usable. */
  replace(secrets: readonly string[]): void {
    this.#keys = this.#derive(secrets)
  }

  get keyId(): number {
    return this.#signing().id
  }

  sign(bytes: Buffer, length: number): void {
    bytes.write(tagOf(this.#signing(), bytes, length), length, tagBytes, 'latin1')
  }

  verify(keyId: number, bytes: Buffer, length: number): 'genuine' | 'key' | 'mac' {
    const key = this.#keys.find(({ id }) => id === keyId)
    if (key === undefined) return 'key'
    expected.write(tagOf(key, bytes, length), 0, tagBytes, 'latin1')
    if (!timingSafeEqual(expected, bytes.subarray(length, length + tagBytes))) return 'mac'
    key.verified += 1
    return 'genuine'
  }

  /** Verified datagrams per key. An old key can be removed once its count stops growing. */
  verifiedByKey(): { readonly keyId: number; readonly verified: number }[] {
    return this.#keys.map(({ id, verified }) => ({ keyId: id, verified }))
  }

  #signing(): Key {
    const [key] = this.#keys
    if (key === undefined) throw new Error('the key ring is empty')
    return key
  }

  #derive(secrets: readonly string[]): Key[] {
    if (secrets.length > secretsMax) {
      throw new GossipConfigError(
        'gossip_secret_invalid',
        `There are ${secrets.length} gossip secrets; the maximum is ${secretsMax}. Remove the oldest.`,
      )
    }
    const texts = secrets.length === 0 ? [openSecret] : secrets
    const keys = texts.map((secret) => this.#deriveOne(secret))
    if (new Set(keys.map(({ id }) => id)).size < keys.length) {
      throw new GossipConfigError(
        'gossip_secret_invalid',
        'Two gossip secrets are equal or have the same derived key id. Generate another one.',
      )
    }
    return keys
  }

  #deriveOne(secret: string): Key {
    if (secret.length < secretLengthMin) {
      throw new GossipConfigError(
        'gossip_secret_invalid',
        `A gossip secret needs at least ${secretLengthMin} characters; try: openssl rand -base64 32`,
      )
    }
    const derived = Buffer.from(hkdfSync('sha256', secret, this.#clusterId, 'rouse gossip 1', 33))
    const id = derived[32] ?? 0
    const known = this.#keys.find((key) => key.id === id)
    const inner = padded(derived.subarray(0, 32), 0x36, acceptedBytesMax)
    const outer = padded(derived.subarray(0, 32), 0x5c, hashBytes)
    const isKnown = known?.outer.compare(outer, 0, blockBytes, 0, blockBytes) === 0
    return { id, inner, outer, verified: isKnown ? known.verified : 0 }
  }
}

const expected = Buffer.alloc(tagBytes)

/** The key, combined with a pad, and room for data behind it. */
function padded(key: Buffer, pad: number, roomBytes: number): Buffer {
  const bytes = Buffer.alloc(blockBytes + roomBytes, 0)
  bytes.fill(pad, 0, blockBytes)
  for (const [index, byte] of key.entries()) bytes[index] = byte ^ pad
  return bytes
}

/** The hash as latin1 text; its first bytes are the tag. Two one-shot hashes to text take half the time of
 * createHmac, which creates an object and a buffer for every datagram. */
function tagOf({ inner, outer }: Key, bytes: Buffer, length: number): string {
  bytes.copy(inner, blockBytes, 0, length)
  const innerHash = hash('sha256', inner.subarray(0, blockBytes + length), 'binary')
  outer.write(innerHash, blockBytes, 'latin1')
  return hash('sha256', outer, 'binary')
}
