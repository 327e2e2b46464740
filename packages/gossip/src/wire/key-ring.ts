// The secrets of a cluster, three at most. The first signs, all verify. To rotate the secret of a running
// cluster, give every node `[old, new]`, then every node `[new, old]`, then every node `[new]`.
//
// A secret is any text of 16 characters or more; `openssl rand -base64 32` makes a good one. The key id on
// the wire is derived from the secret, so there are no ids to assign.
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import { GossipConfigError } from '../gossip-config-error.ts'
import { type Signer, tagBytes } from './frame.ts'

export const secretsMax = 3
export const secretLengthMin = 16

/** Used if there are no secrets, which is allowed only on loopback. It separates such a cluster from every
 * cluster with secrets. */
const openSecret = 'no secret: anybody on this machine may speak'

interface Key {
  readonly id: number
  readonly object: KeyObject
  verified: number
}

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
    bytes.set(tagOf(this.#signing(), bytes, length), length)
  }

  verify(keyId: number, bytes: Buffer, length: number): 'genuine' | 'key' | 'mac' {
    const key = this.#keys.find(({ id }) => id === keyId)
    if (key === undefined) return 'key'
    const tag = bytes.subarray(length, length + tagBytes)
    if (!timingSafeEqual(tagOf(key, bytes, length), tag)) return 'mac'
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
    const object = createSecretKey(derived.subarray(0, 32))
    return { id, object, verified: known?.object.equals(object) ? known.verified : 0 }
  }
}

function tagOf(key: Key, bytes: Buffer, length: number): Buffer {
  const digest = createHmac('sha256', key.object).update(bytes.subarray(0, length)).digest()
  return digest.subarray(0, tagBytes)
}
