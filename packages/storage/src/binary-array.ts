// PostgreSQL arrays in binary wire format. pg sends a Buffer as a binary parameter, so a batch of texts needs
// no quoting on this side and no unquoting on the server. At 100 messages per call this costs a third as much
// as an array literal, on both sides.

const oids = { text: 25, int4: 23, int8: 20, uuid: 2950, bool: 16, timestamptz: 1184 } as const

/** Microseconds between PostgreSQL's epoch (2000-01-01) and Unix's. */
const postgresEpochUs = 946_684_800_000_000n

export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += value === null ? 0 : Buffer.byteLength(value)
  const writer = arrayWriter(oids.text, values.length, bytes)
  for (const value of values) {
    if (value === null) writer.null()
    else writer.text(value)
  }
  return writer.buffer
}

export function int4Array(values: readonly number[]): Buffer {
  const writer = arrayWriter(oids.int4, values.length, values.length * 4)
  for (const value of values) writer.int4(value)
  return writer.buffer
}

export function int8Array(values: readonly (number | bigint | string | null)[]): Buffer {
  const writer = arrayWriter(oids.int8, values.length, values.length * 8)
  for (const value of values) {
    if (value === null) writer.null()
    else writer.int8(BigInt(value))
  }
  return writer.trimmed()
}

export function uuidArray(values: readonly string[]): Buffer {
  const writer = arrayWriter(oids.uuid, values.length, values.length * 16)
  for (const value of values) writer.uuid(value)
  return writer.buffer
}

export function boolArray(values: readonly boolean[]): Buffer {
  const writer = arrayWriter(oids.bool, values.length, values.length)
  for (const value of values) writer.bool(value)
  return writer.buffer
}

/** Values are milliseconds since 1970. */
export function timestampArray(values: readonly (number | null)[]): Buffer {
  const writer = arrayWriter(oids.timestamptz, values.length, values.length * 8)
  for (const value of values) {
    if (value === null) writer.null()
    else writer.int8(BigInt(Math.round(value)) * 1000n - postgresEpochUs)
  }
  return writer.trimmed()
}

const headerBytes = 20

function arrayWriter(oid: number, count: number, bytes: number) {
  const buffer = Buffer.allocUnsafe(headerBytes + count * 4 + bytes)
  buffer.writeInt32BE(count === 0 ? 0 : 1, 0) // dimensions
  buffer.writeInt32BE(1, 4) // may contain nulls
  buffer.writeInt32BE(oid, 8)
  buffer.writeInt32BE(count, 12)
  buffer.writeInt32BE(1, 16) // lower bound
  let at = count === 0 ? 12 : headerBytes
  return {
    buffer: count === 0 ? buffer.subarray(0, 12) : buffer,
    /** The buffer without the space reserved for nulls. */
    trimmed: () => buffer.subarray(0, at),
    null() {
      at = buffer.writeInt32BE(-1, at)
    },
    text(value: string) {
      const length = buffer.write(value, at + 4)
      buffer.writeInt32BE(length, at)
      at += 4 + length
    },
    int4(value: number) {
      at = buffer.writeInt32BE(4, at)
      at = buffer.writeInt32BE(value, at)
    },
    int8(value: bigint) {
      at = buffer.writeInt32BE(8, at)
      at = buffer.writeBigInt64BE(value, at)
    },
    uuid(value: string) {
      at = buffer.writeInt32BE(16, at)
      const end = at + 16
      for (let i = 0; i < value.length; i += 2) {
        if (value.charCodeAt(i) === dash) i += 1
        const byte = hexByte(value, i)
        if (byte < 0 || at === end) throw new TypeError(`not a UUID: ${value}`)
        buffer[at] = byte
        at += 1
      }
      if (at !== end) throw new TypeError(`not a UUID: ${value}`)
    },
    bool(value: boolean) {
      at = buffer.writeInt32BE(1, at)
      at = buffer.writeUInt8(value ? 1 : 0, at)
    },
  }
}

const dash = 45

/** The value of a hexadecimal digit by character code; -256 for any other character. */
const hexDigits = Int16Array.from({ length: 128 }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(digit) ? -256 : digit
})

/** The byte of two hexadecimal digits, negative if invalid. Takes half the time of Buffer's hex decoding. */
function hexByte(text: string, at: number): number {
  return (
    (hexDigits[text.charCodeAt(at)] ?? -256) * 16 + (hexDigits[text.charCodeAt(at + 1)] ?? -256)
  )
}
