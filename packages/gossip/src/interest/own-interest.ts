// What this node waits for, as its peers are told. The digest fits into one datagram: a list of hashes, or
// everything. A key that is withdrawn stays in it for a while: a consumer in a loop is soon back.
//
// The caller counts versions of what it waits for, and the digest has versions of its own on the wire: it
// may change when a key has lingered long enough, and need not change with every version of the caller.
import type { InterestNews } from '../wire/messages.ts'
import { keyHash, writeHashes } from './peer-interest.ts'

export const interestKeysMax = 180
const versionsMax = 64

export interface Interest {
  readonly version: number
  readonly keys: Iterable<string>
}

export class OwnInterest {
  readonly #lingerMs: number
  /** Until when each key is told; Infinity while it is wanted. */
  readonly #untilMs = new Map<string, number>()
  #isDirty = false
  #lingersUntil = Number.POSITIVE_INFINITY
  #callerVersion = 0
  #news: InterestNews = { type: 'interest', version: 0, hashes: 'all' }
  #fingerprint = ''
  /** Versions of the digest with the caller's version that each covers, oldest first. */
  readonly #covers: { digest: number; caller: number }[] = []

  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs
  }

  /** Version 0 says nothing: peers that hold no more send every hint. */
  get news(): InterestNews {
    return this.#news
  }

  /** When the digest has to be made anew; Infinity for never. */
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

  /** Makes the digest anew. True: it is another, and peers must get it. */
  refresh(now: number): boolean {
    this.#isDirty = false
    this.#forgetLingered(now)
    const isAll = this.#untilMs.size > interestKeysMax
    const hashes = isAll ? [] : Array.from(this.#untilMs.keys(), keyHash).toSorted((a, b) => a - b)
    const fingerprint = isAll ? 'all' : hashes.join()
    const isNew = fingerprint !== this.#fingerprint || this.#news.version === 0
    if (isNew) {
      const version = this.#news.version + 1
      this.#fingerprint = fingerprint
      this.#news = { type: 'interest', version, hashes: isAll ? 'all' : writeHashes(hashes) }
    }
    this.#cover(this.#news.version)
    return isNew
  }

  /** The caller's version that a peer holds who holds this version of the digest. */
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
    // A peer that is further behind than this counts as holding nothing.
    if (this.#covers.length > versionsMax) this.#covers.shift()
  }
}
