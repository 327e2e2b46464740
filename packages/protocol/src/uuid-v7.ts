// UUIDv7 (RFC 9562), strictly increasing per generator: 48 bits of milliseconds, a 12-bit counter (method 1
// of section 6.2), 62 random bits. Each millisecond the counter starts at a random value in its lower half,
// so at least 2,048 ids fit. If the counter overflows, or the clock goes back, the generator continues from
// its last millisecond.

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

export function createUuidV7({ now, fillRandom }: UuidV7Options): () => string {
  const pool = new Uint8Array(idsPerPool * bytesPerId)
  const view = new DataView(pool.buffer)
  let at = pool.length
  let lastMs = 0
  let counter = 0

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
    const high = view.getUint16(at + 2)
    const variant = 0x8000 | (high & 0x3fff)
    const low = hex(view.getUint32(at + 4), 8) + hex(view.getUint16(at + 8), 4)
    at += bytesPerId
    const time = hex(lastMs, 12)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(counter, 3)}-${hex(variant, 4)}-${low}`
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
