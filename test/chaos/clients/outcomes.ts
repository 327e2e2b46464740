// What a response, or its absence, proves about a request. If it proves nothing, the outcome is unknown. If a
// call that took effect were recorded as `fail`, the checkers would blame the product wrongly. An unnecessary
// `unknown` would hide defects.
import { TransportError } from '@rouse/client'
import type { Outcome } from '../history/records.ts'

export interface CallResult {
  readonly outcome: Outcome
  readonly status?: number
  readonly code?: string
}

/**
 * With these codes the server states that nothing was done (docs/http.md). Other 503s may come
 * from a balancer.
 */
const refusals = new Set(['overloaded', 'draining', 'database_unavailable'])

export function responseResult(status: number, text: string, asksForMessages: boolean): CallResult {
  if (status >= 200 && status < 300) return { outcome: 'ok', status }
  const code = problemCode(text)
  return { outcome: refused(status, code, asksForMessages) ? 'fail' : 'unknown', status, ...code }
}

/**
 * A request that did not reach a server has had no effect; after any other connection error, it may have had
 * one.
 */
export function errorResult(error: unknown): CallResult {
  const cause = error instanceof TransportError ? error.cause : error
  const code = codeOf(cause)
  const unsent = error instanceof TransportError && !error.maybeSent
  return { outcome: unsent ? 'fail' : 'unknown', code }
}

/**
 * A pop may have leased messages before it lost the database: a lease exists even if its response is lost.
 */
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
