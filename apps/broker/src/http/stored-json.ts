// Writes responses that contain payloads. A payload is stored as JSON text and sent without parsing it, so
// that a number of thirty digits keeps all its digits.
import type { PayloadCipher, PayloadPlace } from '../encryption/payload-cipher.ts'

/** The payload of a stored message, or null and `undecrypted` if this node cannot decrypt it. */
export function dataOf(
  cipher: Pick<PayloadCipher, 'open'>,
  place: PayloadPlace,
  stored: string,
): { readonly data: string | null; readonly more: { readonly undecrypted?: true } } {
  try {
    return { data: cipher.open(place, stored), more: {} }
  } catch {
    return { data: null, more: { undecrypted: true } }
  }
}

/** Writes an object as JSON, with some of its fields given as JSON text. */
export function jsonWith(
  fields: Readonly<Record<string, unknown>>,
  stored: Readonly<Record<string, string | null>>,
): string {
  const texts = Object.entries(stored).map(([name, text]) => `"${name}":${text ?? 'null'}`)
  const head = JSON.stringify(fields).slice(0, -1)
  return `${head}${head === '{' ? '' : ','}${texts.join(',')}}`
}

/** Writes `{"name":[…],…}` from a list of objects that are already JSON text. */
export function jsonList(
  name: string,
  items: readonly string[],
  fields: Readonly<Record<string, unknown>> = {},
): string {
  return jsonWith(fields, { [name]: `[${items.join(',')}]` })
}
