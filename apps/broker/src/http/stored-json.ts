// Answers that carry payloads. They are JSON text in the database and go out as they are, without being parsed: a
// number of thirty digits comes back with all of them.
import type { PayloadCipher, PayloadPlace } from '../encryption/payload-cipher.ts'

/** The payload of a stored message; null and a word about it where this node cannot decrypt it. */
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

/** An object as JSON, some of its fields given as JSON text. */
export function jsonWith(
  fields: Readonly<Record<string, unknown>>,
  stored: Readonly<Record<string, string | null>>,
): string {
  const texts = Object.entries(stored).map(([name, text]) => `"${name}":${text ?? 'null'}`)
  const head = JSON.stringify(fields).slice(0, -1)
  return `${head}${head === '{' ? '' : ','}${texts.join(',')}}`
}

/** `{"name":[…],…}`, the list of objects that are JSON text already. */
export function jsonList(
  name: string,
  items: readonly string[],
  fields: Readonly<Record<string, unknown>> = {},
): string {
  return jsonWith(fields, { [name]: `[${items.join(',')}]` })
}
