// A worker's copy of the API keys. The primary reads them every five seconds and when a key has changed, and sends
// them to its workers, so no request needs a query.
//
// While the database is unavailable, the copy grows old: known keys stay valid for an hour, and a key that is not in
// the copy may exist, so it is refused as `database_unavailable` and not as unknown.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { RouseError } from '@rouse/protocol'
import type { KeyTable, LiveKey } from '@rouse/storage'
import type { Clock } from '../clock.ts'
import { apiKeyHash, apiKeyId, apiKeyLength } from './api-key.ts'
import { Grants, parseGrant } from './grants.ts'
import { type Principal, peerNode } from './principal.ts'
import { isSignedBy, type KeySession, readSession, signSession } from './session.ts'

/** A copy of this age is not old: the primary has missed at most two reads. */
const freshMs = 15_000
/** How long known keys stay valid without a read. */
const validMsMax = 3_600_000
/** The most that the clocks of two nodes may differ. */
const nodeTokenMsMax = 60_000
const dayMs = 86_400_000
const idStart = 'rouse_'.length
const idEnd = idStart + 12
const scratch = Buffer.alloc(apiKeyLength)

export class KeyRing {
  readonly #clock: Clock
  #keys: ReadonlyMap<string, KnownKey> = new Map()
  #nodeSecret = Buffer.alloc(0)
  #readAtMs = Number.NEGATIVE_INFINITY
  readonly #used = new Set<string>()
  /** The day of the last report, by key. */
  #reported = new Map<string, number>()

  /** Whether there has ever been a key. */
  hasKeys = true
  /** Whether a key has limits. */
  hasLimits = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes the keys that the primary read `ageMs` ago. `table` is undefined if they have not changed. */
  update(table: KeyTable | undefined, ageMs = 0): void {
    this.#readAtMs = this.#clock.nowMs() - ageMs
    if (table === undefined) return
    this.#keys = new Map(
      table.keys.map((key) => [
        key.id,
        this.#keys.get(key.id)?.unlessChanged(key) ?? new KnownKey(key),
      ]),
    )
    this.#reported = new Map([...this.#reported].filter(([id]) => this.#keys.has(id)))
    this.hasKeys = table.hasKeys
    this.hasLimits = table.keys.some(({ limits }) => Object.keys(limits).length > 0)
    this.#nodeSecret = Buffer.from(table.nodeSecret, 'hex')
  }

  /** The principal of a key. Throws if the key is not valid, or if that cannot be known. */
  find(key: string): Principal {
    const ageMs = this.#clock.nowMs() - this.#readAtMs
    const known = this.#keys.get(key.slice(idStart, idEnd))
    if (known?.isShownBy(key) === true && known.expiresAtMs > this.#clock.wallMs()) {
      if (ageMs > validMsMax) throw new RouseError('database_unavailable')
      this.#used.add(known.id)
      return known.principal
    }
    if (ageMs > freshMs && known === undefined && apiKeyId(key) !== undefined) {
      throw new RouseError('database_unavailable')
    }
    throw new RouseError('unauthenticated', 'the API key is not valid: unknown, expired or revoked')
  }

  /** A session for the holder of a key, which `find` has found before; undefined if the key has just ended. */
  signSession(session: KeySession): string | undefined {
    const known = this.#keys.get(session.keyId)
    if (known === undefined || this.#nodeSecret.length === 0) return undefined
    return signSession(session, { nodeSecret: this.#nodeSecret, keyHash: known.hash })
  }

  /** The principal of a session. Throws if the session or its key has ended, or if that cannot be known. */
  findSession(text: string): Principal {
    const ageMs = this.#clock.nowMs() - this.#readAtMs
    const session = readSession(text)
    const known = session === undefined ? undefined : this.#keys.get(session.keyId)
    if (session !== undefined && known !== undefined && this.#nodeSecret.length > 0) {
      const secrets = { nodeSecret: this.#nodeSecret, keyHash: known.hash }
      const expiresAtMs = Math.min(session.expiresAtMs, known.expiresAtMs)
      if (isSignedBy(session, secrets) && expiresAtMs > this.#clock.wallMs()) {
        if (ageMs > validMsMax) throw new RouseError('database_unavailable')
        this.#used.add(known.id)
        return { ...known.principal, endsAtMs: expiresAtMs }
      }
    }
    if (ageMs > freshMs && session !== undefined && known === undefined) {
      throw new RouseError('database_unavailable')
    }
    throw new RouseError('unauthenticated', 'the session has ended: sign in again')
  }

  /** Signs what is neither a session of a key nor the credential of a node. Undefined: the secret is not known yet. */
  signText(text: string): string | undefined {
    if (this.#nodeSecret.length === 0) return undefined
    return createHmac('sha256', this.#nodeSecret).update(`text ${text}`).digest('base64url')
  }

  /** When a key ends; infinity if it does not, or is not known. */
  endOf(keyId: string): number {
    return this.#keys.get(keyId)?.expiresAtMs ?? Number.POSITIVE_INFINITY
  }

  get keyIds(): ReadonlySet<string> {
    return new Set(this.#keys.keys())
  }

  /** Whether a key that was valid before still is. */
  isValid(keyId: string): boolean {
    const known = this.#keys.get(keyId)
    return known !== undefined && known.expiresAtMs > this.#clock.wallMs()
  }

  /** The ids of keys that were used since the last call, for the first time today. */
  takeUsed(): string[] {
    const today = Math.floor(this.#clock.wallMs() / dayMs)
    const ids = [...this.#used].filter((id) => this.#reported.get(id) !== today)
    this.#used.clear()
    for (const id of ids) this.#reported.set(id, today)
    return ids
  }

  /** A credential for a request to another node of the cluster. */
  signForNode(): string {
    const atMs = String(Math.round(this.#clock.wallMs()))
    return `rousenode_${atMs}_${this.#signature(atMs).toString('hex')}`
  }

  /** Undefined if no node of this cluster has signed the credential within the last minute. */
  findNode(credential: string): Principal | undefined {
    const [, atMs = '', signature = ''] =
      /^rousenode_(\d{1,15})_([0-9a-f]{64})$/.exec(credential) ?? []
    if (signature === '' || this.#nodeSecret.length === 0) return undefined
    if (Math.abs(this.#clock.wallMs() - Number(atMs)) > nodeTokenMsMax) return undefined
    return timingSafeEqual(Buffer.from(signature, 'hex'), this.#signature(atMs))
      ? peerNode
      : undefined
  }

  #signature(atMs: string): Buffer {
    return createHmac('sha256', this.#nodeSecret).update(`stats ${atMs}`).digest()
  }
}

class KnownKey {
  readonly id: string
  readonly principal: Principal
  readonly expiresAtMs: number
  readonly #key: LiveKey
  readonly hash: Buffer
  /** The key itself, once it was shown: comparing it costs a tenth of hashing it. */
  #shown: Buffer | undefined

  constructor(key: LiveKey) {
    this.#key = key
    this.id = key.id
    this.hash = Buffer.from(key.hash, 'hex')
    this.expiresAtMs = key.expiresAtMs ?? Number.POSITIVE_INFINITY
    const grants = new Grants(key.grants.flatMap(readGrant))
    const limits = Object.keys(key.limits).length === 0 ? undefined : key.limits
    this.principal = { name: key.name, grants, keyId: key.id, limits }
  }

  /** Compares in constant time. */
  isShownBy(key: string): boolean {
    if (key.length !== apiKeyLength) return false
    if (this.#shown !== undefined) {
      scratch.write(key, 'latin1')
      return timingSafeEqual(scratch, this.#shown)
    }
    if (!timingSafeEqual(apiKeyHash(key), this.hash)) return false
    this.#shown = Buffer.from(key, 'latin1')
    return true
  }

  unlessChanged(key: LiveKey): this | undefined {
    return JSON.stringify(key) === JSON.stringify(this.#key) ? this : undefined
  }
}

/** A later release may store grants that this one does not know: they allow nothing here. */
function readGrant(text: string) {
  try {
    return [parseGrant(text, 'grants')]
  } catch {
    return []
  }
}
