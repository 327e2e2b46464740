import type { InterestMessage } from '../wire/messages.ts'

const hashBytes = 6

/** A peer's interest, as far as we received it. While it is unknown or outdated, the peer gets every hint. */
export class PeerInterest {
  #version = 0
  #latestVersion = 0
  #wanted: Set<number> | 'all' | 'unknown' = 'unknown'

  get version(): number {
    return this.#version
  }

  get size(): number | 'all' | 'unknown' {
    return typeof this.#wanted === 'string' ? this.#wanted : this.#wanted.size
  }

  /** Returns false if this version or a later one is already known. */
  receive({ version, hashes }: InterestMessage): boolean {
    if (version <= this.#version) return false
    this.#version = version
    this.#latestVersion = Math.max(this.#latestVersion, version)
    this.#wanted = hashes === 'all' ? 'all' : new Set(readHashes(hashes))
    return true
  }

  noteVersion(version: number): void {
    this.#latestVersion = Math.max(this.#latestVersion, version)
  }

  /** Whether the peer gets a hint with these key hashes. A hint without keys is for every peer. */
  wants(hashes: readonly number[] | undefined): boolean {
    const wanted = this.#wanted
    if (hashes === undefined || typeof wanted === 'string') return true
    return this.#latestVersion > this.#version || hashes.some((hash) => wanted.has(hash))
  }
}

/** 48 bits. A collision costs one unnecessary hint. */
export function keyHash(key: string): number {
  let a = 0xdead_beef
  let b = 0x41c6_ce57
  for (let index = 0; index < key.length; index += 1) {
    const code = key.charCodeAt(index)
    a = Math.imul(a ^ code, 2_654_435_761)
    b = Math.imul(b ^ code, 1_597_334_677)
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909)
  return (b & 0xff_ff) * 2 ** 32 + (a >>> 0)
}

export function writeHashes(hashes: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(hashes.length * hashBytes)
  for (const [index, hash] of hashes.entries()) {
    bytes.writeUIntBE(hash, index * hashBytes, hashBytes)
  }
  return bytes
}

function readHashes(bytes: Uint8Array): number[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return Array.from({ length: bytes.length / hashBytes }, (_, index) =>
    buffer.readUIntBE(index * hashBytes, hashBytes),
  )
}
