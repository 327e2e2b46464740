// What an answer, or the lack of one, proves about a request. Where it proves nothing the outcome is unknown: a `fail` that
// did happen would make the checkers blame the product, an `unknown` that is too cautious makes them blind.
import { TransportError } from '@rouse/client'
import type { Outcome } from '../history/records.ts'

export interface Heard {
  readonly outcome: Outcome
  readonly status?: number
  readonly code?: string
}

/** By these the server says: nothing was done (packages/protocol/README.md). Other 503s may come from a balancer. */
const refusals = new Set(['overloaded', 'draining', 'database_unavailable'])

export function heardAnswer(status: number, text: string, asksForMessages: boolean): Heard {
  if (status >= 200 && status < 300) return { outcome: 'ok', status }
  const code = problemCode(text)
  return { outcome: refused(status, code, asksForMessages) ? 'fail' : 'unknown', status, ...code }
}

/** A request that found no server cannot have been carried out; any other break may have come after it was. */
export function heardError(error: unknown): Heard {
  const cause = error instanceof TransportError ? error.cause : error
  const code = codeOf(cause)
  const unsent = error instanceof TransportError && !error.maybeSent
  return { outcome: unsent ? 'fail' : 'unknown', code }
}

/** A pop that found the database gone may have leased before it went: leases need no answer to exist. */
function refused(status: number, { code }: { code?: string }, asksForMessages: boolean): boolean {
  if (status >= 400 && status < 500) return true
  if (status !== 503 || code === undefined || !refusals.has(code)) return false
  return !(asksForMessages && code === 'database_unavailable')
}

function problemCode(text: string): { code?: string } {
  try {
    const { code } = JSON.parse(text) as { code?: unknown }
    return typeof code === 'string' ? { code } : {}
  } catch {
    return {}
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'AbortError') return 'aborted'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
