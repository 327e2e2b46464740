/** An integer from 0 to 2⁵³ − 1. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

export function isText(value: unknown, bytesMax: number): value is string {
  return typeof value === 'string' && Buffer.byteLength(value) <= bytesMax
}

export function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array
}
