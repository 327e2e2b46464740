import { isUtf8 } from 'node:buffer'
import { RouseError } from '@rouse/protocol'
import { keepExactTexts } from './exact-numbers.ts'

/**
 * Fastify's own parser refuses a key called `__proto__`; for a message that is a key like any other. JSON.parse makes
 * it a property of its own and JSON.stringify writes it again, so the payload comes back equal. No body is undefined.
 */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  // Decoding would put U+FFFD in the place of broken bytes, and the payload would not come back equal.
  if (!isUtf8(body)) throw new RouseError('invalid_request', 'the body is not valid UTF-8')
  const text = body.toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    keepExactTexts(text, value)
    return value
  } catch (error) {
    throw new RouseError('invalid_request', `the body is not valid JSON: ${reason(error)}`)
  }
}

/** V8 quotes the text around the fault. Bodies do not belong into answers that end up in logs. */
function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : ''
  return /at position \d+/.exec(text)?.[0] ?? 'it ends too early or is malformed'
}

/** Old clients write null where they mean nothing. Only a payload may be null and mean it. */
export function withoutNulls(value: unknown, keep?: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const record = value as Record<string, unknown>
  for (const key of Object.keys(record)) {
    if (record[key] === null && key !== keep) delete record[key]
  }
  return record
}
