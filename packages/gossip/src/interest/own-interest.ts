// This node's interest, as sent to its peers. The digest fits into one datagram: a list of hashes, or
// everything. A withdrawn key stays in the digest for a while, because a consumer in a loop soon waits again.
//
// The caller numbers the versions of its interest. The digest has separate version numbers on the wire,
// because the digest also changes when a withdrawn key is finally removed, and need not change with every
// version of the caller.
import type { InterestMessage } from '../wire/messages.ts'
import { keyHash, writeHashes } from './peer-interest.ts'

export const interestKeysMax = 180
const versionsMax = 64

export interface Interest {
  readonly version: number
  readonly keys: Iterable<string>
}

export class OwnInterest {
  readonly #lingerMs: number
  /** Until when each key stays in the digest; Infinity until the key is withdrawn. */
  readonly #untilMs = new Map<string, number>()
  #isDirty = false
  #lingersUntil = Number.POSITIVE_INFINITY
  #callerVersion = 0
  #message: InterestMessage = { type: 'interest', version: 0, hashes: 'all' }
  #fingerprint = ''
  /** Each digest version with the caller's version that it covers, oldest first. */
  readonly #covers: { digest: number; caller: number }[] = []

  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs
  }

  /** Version 0 is sent before the interest is known: peers that hold version 0 send every hint. */
  get message(): InterestMessage {
    return this.#message
  }

  /** When to rebuild the digest; Infinity for never. */
  get dirtyAt(): number {
    return this.#isDirty ? Number.NEGATIVE_INFINITY : this.#lingersUntil
  }

  set({ version, keys }: Interest, now: number): void {
    this.#callerVersion = version
    this.#isDirty = true
    const wanted = new Set(keys)
    for (const [key, until] of this.#untilMs) {
      if (until === Number.POSITIVE_INFINITY && !wanted.has(key)) {
        this.#untilMs.set(key, now + this.#lingerMs)
      }
    }
    for (const key of wanted) this.#untilMs.set(key, Number.POSITIVE_INFINITY)
  }

  /** Rebuilds the digest. Returns true if it changed and must be sent. */
  refresh(now: number): boolean {
    this.#isDirty = false
    this.#forgetLingered(now)
    const isAll = this.#untilMs.size > interestKeysMax
    const hashes = isAll ? [] : Array.from(this.#untilMs.keys(), keyHash).toSorted((a, b) => a - b)
    const fingerprint = isAll ? 'all' : hashes.join()
    const isNew = fingerprint !== this.#fingerprint || this.#message.version === 0
    if (isNew) {
      const version = this.#message.version + 1
      this.#fingerprint = fingerprint
      this.#message = { type: 'interest', version, hashes: isAll ? 'all' : writeHashes(hashes) }
    }
    this.#cover(this.#message.version)
    return isNew
  }

  /** The caller's version that is covered by a version of the digest. */
  callerVersion(digestVersion: number | 'no peers'): number {
    if (digestVersion === 'no peers') return this.#callerVersion
    return this.#covers.findLast(({ digest }) => digest <= digestVersion)?.caller ?? 0
  }

  #forgetLingered(now: number): void {
    this.#lingersUntil = Number.POSITIVE_INFINITY
    for (const [key, until] of this.#untilMs) {
      if (until <= now) this.#untilMs.delete(key)
      else this.#lingersUntil = Math.min(this.#lingersUntil, until)
    }
  }

  #cover(digest: number): void {
    const last = this.#covers.at(-1)
    if (last?.digest === digest) last.caller = this.#callerVersion
    else this.#covers.push({ digest, caller: this.#callerVersion })
    // A peer that is further behind is treated as if it held no version.
    if (this.#covers.length > versionsMax) this.#covers.shift()
  }
}
