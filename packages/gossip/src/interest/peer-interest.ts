import type { InterestMessage } from '../wire/messages.ts'

/** An entry is the hash of a scope and the hash of a consumer group. */
export const entryBytes = 8
const hashBytes = 4

/** The entries that a hint matches. */
export interface Wanted {
  /** Hashes of scopes; undefined: any entry, and also a peer without entries. */
  readonly scopes: readonly number[] | undefined
  /** Hash of a consumer group; undefined: any. */
  readonly group: number | undefined
  /** Hashes of the consumer groups that do not need the hint. */
  readonly served: ReadonlySet<number>
}

/** A peer's interest, as far as we received it. While it is unknown or outdated, the peer gets every hint. */
export class PeerInterest {
  #version = 0
  #latestVersion: number | 'unknown' = 'unknown'
  /** The consumer groups by scope. Version 0 has none: the peer never had a waiter. */
  #wanted: ReadonlyMap<number, readonly number[]> | 'all' = new Map()

  get version(): number {
    return this.#version
  }

  get size(): number | 'all' | 'unknown' {
    if (this.#wanted === 'all') return 'all'
    // Also unknown: nothing has arrived from a peer that has waiters.
    if (this.#version === 0 && this.#latestVersion !== 0) return 'unknown'
    let size = 0
    for (const groups of this.#wanted.values()) size += groups.length
    return size
  }

  /** The peer waits for nothing. False if that is not known. */
  get isEmpty(): boolean {
    const isCurrent = this.#latestVersion === this.#version
    return isCurrent && this.#wanted !== 'all' && this.#wanted.size === 0
  }

  /** Returns false if this version or a later one is already known. */
  receive({ version, entries }: InterestMessage): boolean {
    if (version <= this.#version) return false
    this.#version = version
    this.noteVersion(version)
    this.#wanted = entries === 'all' ? 'all' : readEntries(entries)
    return true
  }

  /** The peer reports that its interest has this version. */
  noteVersion(version: number): void {
    const latest = this.#latestVersion
    this.#latestVersion = latest === 'unknown' ? version : Math.max(latest, version)
  }

  wants(wanted: Wanted): boolean {
    const groups = this.groupsFor(wanted)
    return groups === 'any' || groups.length > 0
  }

  /** The consumer groups of the entries that match. `any`: the peer gets the hint, and its groups are not
   * known or do not matter. */
  groupsFor({ scopes, group, served }: Wanted): readonly number[] | 'any' {
    const wanted = this.#wanted
    if (scopes === undefined || wanted === 'all' || this.#latestVersion !== this.#version) {
      return 'any'
    }
    const groups: number[] = []
    for (const scope of scopes) {
      for (const one of wanted.get(scope) ?? []) {
        const isMeant = (group === undefined || one === group) && !served.has(one)
        if (isMeant && !groups.includes(one)) groups.push(one)
      }
    }
    return groups
  }
}

/** 32 bits. Two scopes with the same hash cost unnecessary hints. Two consumer groups with the same hash, one
 * of 2³² pairs, cost a late one: the messages of one group are then found by the fallback poll. */
export function nameHash(name: string): number {
  let a = 0xdead_beef
  let b = 0x41c6_ce57
  for (let index = 0; index < name.length; index += 1) {
    const code = name.charCodeAt(index)
    a = Math.imul(a ^ code, 2_654_435_761)
    b = Math.imul(b ^ code, 1_597_334_677)
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  return a >>> 0
}

export function writeEntries(entries: readonly (readonly [number, number])[]): Uint8Array {
  const bytes = Buffer.alloc(entries.length * entryBytes)
  for (const [index, [scope, group]] of entries.entries()) {
    bytes.writeUInt32BE(scope, index * entryBytes)
    bytes.writeUInt32BE(group, index * entryBytes + hashBytes)
  }
  return bytes
}

function readEntries(bytes: Uint8Array): Map<number, number[]> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const entries = new Map<number, number[]>()
  for (let at = 0; at < bytes.length; at += entryBytes) {
    const scope = buffer.readUInt32BE(at)
    const group = buffer.readUInt32BE(at + hashBytes)
    const groups = entries.get(scope)
    if (groups === undefined) entries.set(scope, [group])
    else groups.push(group)
  }
  return entries
}
