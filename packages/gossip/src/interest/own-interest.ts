// This node's interest, as sent to its peers. The digest fits into one datagram: a list of entries, or
// everything. A withdrawn entry stays in the digest for a while, because a consumer in a loop soon waits
// again.
//
// The caller numbers the versions of its interest. The digest has separate version numbers on the wire,
// because the digest also changes when a withdrawn entry is finally removed, and need not change with every
// version of the caller. Version 0 of the digest is empty and is never sent: a heartbeat with this version
// says that the node never had a waiter.
import type { InterestMessage } from '../wire/messages.ts'
import { nameHash, writeEntries } from './peer-interest.ts'

export const interestEntriesMax = 140
const versionsMax = 64

/** Waiters of a consumer group for a scope, for example a queue. */
export interface InterestEntry {
  readonly scope: string
  readonly group: string
}

export interface Interest {
  readonly version: number
  readonly entries: Iterable<InterestEntry>
}

export class OwnInterest {
  readonly #lingerMs: number
  /** By scope and consumer group: until when the entry stays in the digest; Infinity until it is withdrawn. */
  readonly #untilMs = new Map<string, Map<string, number>>()
  #isDirty = false
  #lingersUntil = Number.POSITIVE_INFINITY
  #callerVersion = 0
  #message: InterestMessage = { type: 'interest', version: 0, entries: new Uint8Array() }
  #fingerprint = ''
  #removedVersion = 0
  /** Each digest version with the caller's version that it covers, oldest first. */
  readonly #covers: { digest: number; caller: number }[] = []

  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs
  }

  get message(): InterestMessage {
    return this.#message
  }

  /** The first version without an entry that was removed last. Peers with an earlier version may still count
   * on that entry. */
  get removedVersion(): number {
    return this.#removedVersion
  }

  /** When to rebuild the digest; Infinity for never. */
  get dirtyAt(): number {
    return this.#isDirty ? Number.NEGATIVE_INFINITY : this.#lingersUntil
  }

  set({ version, entries }: Interest, now: number): void {
    this.#callerVersion = version
    this.#isDirty = true
    const wanted = new Map<string, Set<string>>()
    for (const { scope, group } of entries) {
      wanted.set(scope, (wanted.get(scope) ?? new Set()).add(group))
    }
    for (const [scope, groups] of this.#untilMs) {
      for (const [group, until] of groups) {
        const isWithdrawn = until === Number.POSITIVE_INFINITY && !wanted.get(scope)?.has(group)
        if (isWithdrawn) groups.set(group, now + this.#lingerMs)
      }
    }
    for (const [scope, groups] of wanted) {
      const known = this.#untilMs.get(scope) ?? new Map<string, number>()
      this.#untilMs.set(scope, known)
      for (const group of groups) known.set(group, Number.POSITIVE_INFINITY)
    }
  }

  /** The consumer groups in the digest for these scopes, including withdrawn ones. */
  groupsFor(scopes: readonly string[]): Set<string> {
    return new Set(scopes.flatMap((scope) => [...(this.#untilMs.get(scope)?.keys() ?? [])]))
  }

  /** Rebuilds the digest. Returns true if it changed and must be sent. */
  refresh(now: number): boolean {
    this.#isDirty = false
    const hasRemoved = this.#removeLingered(now)
    const isAll = this.#count() > interestEntriesMax
    const entries = isAll ? [] : this.#entries()
    const fingerprint = isAll ? 'all' : entries.map((entry) => entry.join()).join(';')
    const isNew = fingerprint !== this.#fingerprint
    if (isNew) {
      const version = this.#message.version + 1
      this.#fingerprint = fingerprint
      this.#message = { type: 'interest', version, entries: isAll ? 'all' : writeEntries(entries) }
    }
    if (hasRemoved) this.#removedVersion = this.#message.version
    this.#cover(this.#message.version)
    return isNew
  }

  /** The caller's version that is covered by a version of the digest. */
  callerVersion(digestVersion: number | 'no peers'): number {
    if (digestVersion === 'no peers') return this.#callerVersion
    return this.#covers.findLast(({ digest }) => digest <= digestVersion)?.caller ?? 0
  }

  #count(): number {
    let count = 0
    for (const { size } of this.#untilMs.values()) count += size
    return count
  }

  /** The hashes of all entries, sorted. */
  #entries(): (readonly [number, number])[] {
    const entries: (readonly [number, number])[] = []
    for (const [scope, groups] of this.#untilMs) {
      const scopeHash = nameHash(scope)
      for (const group of groups.keys()) entries.push([scopeHash, nameHash(group)])
    }
    return entries.sort(([a, b], [c, d]) => a - c || b - d)
  }

  #removeLingered(now: number): boolean {
    let hasRemoved = false
    this.#lingersUntil = Number.POSITIVE_INFINITY
    for (const [scope, groups] of this.#untilMs) {
      for (const [group, until] of groups) {
        if (until > now) this.#lingersUntil = Math.min(this.#lingersUntil, until)
        else hasRemoved = groups.delete(group)
      }
      if (groups.size === 0) this.#untilMs.delete(scope)
    }
    return hasRemoved
  }

  #cover(digest: number): void {
    const last = this.#covers.at(-1)
    if (last?.digest === digest) last.caller = this.#callerVersion
    else this.#covers.push({ digest, caller: this.#callerVersion })
    // A peer that is further behind is treated as if it held no version.
    if (this.#covers.length > versionsMax) this.#covers.shift()
  }
}
