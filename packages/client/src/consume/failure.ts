// Classifies a try without a usable answer: whether to retry, whether the node has failed, and whether the
// request may have been executed.

import { wallMs } from '../clock.ts'
import { retryAfterMs } from '../http/backoff.ts'
import { type TransportAnswer, TransportError } from '../http/transport.ts'
import { type FieldError, RouseError } from '../rouse-error.ts'

export interface Failure {
  readonly error: RouseError
  /** The node has a problem, not only this call. */
  readonly isOfNode: boolean
  /** The request may still have been executed. */
  readonly outcomeUnknown: boolean
  readonly retryAfterMs: number | undefined
}

/** Undefined if another try would not help. */
export function failureOfAnswer(answer: TransportAnswer): Failure | undefined {
  const { status } = answer
  if (status < 400 || !passing.has(status)) return undefined
  const error = errorOfAnswer(answer)
  return {
    error,
    isOfNode: status > 500 && error.code !== partitionLocked,
    outcomeUnknown: status >= 500 && !refusals.has(error.code),
    retryAfterMs: retryAfterMs(answer.retryAfter, wallMs),
  }
}

/** Not a problem of one node: every node would hit the same lock. */
const partitionLocked = 'partition_locked'

const passing = new Set([408, 429, 500, 502, 503, 504])

/** Error codes of 5xx answers that mean that nothing was done. A 503 of a load balancer has no such code. */
const refusals = new Set<string>([
  'overloaded',
  'starting',
  'draining',
  'database_unavailable',
  partitionLocked,
])

export function failureOfTransport(
  error: unknown,
  url: URL,
  timeoutMs: number,
  timedOut: boolean,
): Failure {
  const maybeSent = timedOut || !(error instanceof TransportError) || error.maybeSent
  const text = timedOut
    ? `${url.origin} did not answer within ${timeoutMs} ms`
    : `${url.origin}: ${error instanceof Error ? error.message : String(error)}`
  return {
    error: new RouseError(maybeSent ? 'no_answer' : 'unreachable', text, {
      retryable: true,
      cause: error,
    }),
    isOfNode: true,
    outcomeUnknown: maybeSent,
    retryAfterMs: undefined,
  }
}

interface Problem {
  readonly code?: unknown
  readonly detail?: unknown
  readonly retryable?: unknown
  readonly requestId?: string
  readonly node?: string
  readonly errors?: readonly FieldError[]
}

/** The error in a 4xx or 5xx answer. */
export function errorOfAnswer({ status, text }: { status: number; text: string }): RouseError {
  const problem = readProblem(text)
  const code = typeof problem.code === 'string' ? problem.code : codeOfStatus(status)
  const detail =
    typeof problem.detail === 'string'
      ? problem.detail
      : `the server answered with status ${status}`
  return new RouseError(code, detail, {
    status,
    retryable: problem.retryable === undefined ? passing.has(status) : problem.retryable === true,
    requestId: problem.requestId,
    node: problem.node,
    errors: problem.errors,
  })
}

function readProblem(text: string): Problem {
  try {
    return Object(JSON.parse(text)) as Problem
  } catch {
    return {}
  }
}

/** For answers of proxies, which do not use our codes. */
function codeOfStatus(status: number): string {
  if (status === 429) return 'rate_limited'
  if (status === 413) return 'payload_too_large'
  return status >= 500 ? 'unavailable' : 'bad_answer'
}
