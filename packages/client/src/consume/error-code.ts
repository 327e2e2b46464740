// The error code of a failure. Dead letters are counted and redriven by it, so two failures must have the
// same code if and only if they have the same cause.
import { isRouseError } from '../rouse-error.ts'

const codeCharsMax = 64

export function errorCodeOf(error: unknown): string {
  if (isRouseError(error)) return error.code
  const { code, name, message } = (error instanceof Error ? error : { message: String(error) }) as {
    readonly code?: unknown
    readonly name?: string
    readonly message: string
  }
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code
  if (name !== undefined && name !== '' && name !== 'Error') return name.slice(0, codeCharsMax)
  return withoutValues(message).slice(0, codeCharsMax) || 'Error'
}

/** Replaces what differs between failures of one kind: UUIDs, quoted parts and numbers. */
function withoutValues(message: string): string {
  return message
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '*')
    .replaceAll(/"[^"]*"|'[^']*'|`[^`]*`/g, '*')
    .replaceAll(/\d+(?:[.,]\d+)*/g, '*')
}
