// Poison isolation: what happens to the requests of a shared call that failed.
//
//   invalid, conflict   one of them is at fault: the call is split in halves until it stands alone. The others succeed.
//   retryable           nobody is at fault: the same call again.
//   lock timeout        a row is kept locked: the requests go to the separate line, which finds out whose it is.
//   unavailable         all fail. If the statement may have reached the server its outcome is unknown, never success.
import { setTimeout as delay } from 'node:timers/promises'
import { classifyPostgresError, OutcomeUnknownError, provesNotCommitted } from '@rouse/database'
import { SidecarError } from '../sidecar-error.ts'

export interface IsolatedCall<R> {
  /** One SQL call for these requests. Resolves when it has settled every one of them. */
  readonly call: (requests: readonly R[]) => Promise<void>
  readonly reject: (request: R, error: SidecarError) => void
  /** A lock did not come within its timeout, and nothing happened. Absent: the call is split and tried again. */
  readonly onLocked?: (requests: readonly R[]) => void
  /** Told of every failure that says something about the database's health. */
  readonly onUnavailable: (error: SidecarError) => void
  /** A read may be repeated after a lost connection; a write may have happened. */
  readonly writes: boolean
  readonly random: () => number
}

const lockTimeout = '55P03'
const attemptsMax = 8
const retryDelayMs = 2

export async function runIsolated<R>(
  requests: readonly R[],
  options: IsolatedCall<R>,
  attempt = 1,
): Promise<void> {
  try {
    await options.call(requests)
  } catch (error) {
    await handleFailure(error, requests, options, attempt)
  }
}

async function handleFailure<R>(
  error: unknown,
  requests: readonly R[],
  options: IsolatedCall<R>,
  attempt: number,
): Promise<void> {
  const kind = classifyPostgresError(error)
  if (kind === 'unavailable' || kind === 'outcome_unknown') {
    const failure = connectionFailure(error, options.writes)
    options.onUnavailable(failure)
    for (const request of requests) options.reject(request, failure)
    return
  }
  if (options.onLocked !== undefined && sqlState(error) === lockTimeout) {
    options.onLocked(requests)
    return
  }
  if (requests.length > 1 && (kind !== 'retryable' || sqlState(error) === lockTimeout)) {
    const middle = Math.ceil(requests.length / 2)
    // One after the other: together they may hold what each other wants.
    await runIsolated(requests.slice(0, middle), options, 1)
    await runIsolated(requests.slice(middle), options, 1)
    return
  }
  if (kind === 'retryable' && attempt < attemptsMax) {
    await delay(options.random() * retryDelayMs * 2 ** attempt)
    await runIsolated(requests, options, attempt + 1)
    return
  }
  const failure = refusal(error, kind === 'retryable')
  for (const request of requests) options.reject(request, failure)
}

/** Makes a call that leaves nothing behind when it fails until it does not fail for a passing reason. */
export async function retrying<T>(call: () => Promise<T>, random: () => number): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call()
    } catch (error) {
      if (classifyPostgresError(error) !== 'retryable' || attempt === attemptsMax) throw error
      await delay(random() * retryDelayMs * 2 ** attempt)
    }
  }
}

/** What a failed read means: it can be repeated, so nothing about it is unknown. */
export function connectionFailureOf(error: unknown): SidecarError {
  const kind = classifyPostgresError(error)
  return kind === 'unavailable' || kind === 'outcome_unknown'
    ? connectionFailure(error, false)
    : refusal(error, kind === 'retryable')
}

function connectionFailure(error: unknown, writes: boolean): SidecarError {
  if (writes && (error instanceof OutcomeUnknownError || !provesNotCommitted(error))) {
    return new SidecarError('outcome_unknown', 'the connection was lost before the answer came', {
      cause: error,
    })
  }
  return new SidecarError('database_unavailable', 'PostgreSQL does not answer', { cause: error })
}

function refusal(error: unknown, retryable: boolean): SidecarError {
  const message = error instanceof Error ? error.message : String(error)
  if (retryable) return new SidecarError('busy', message, { cause: error })
  const state = sqlState(error)
  if (state?.startsWith('RS')) {
    return new SidecarError('refused', message, { cause: error, state, detail: readDetail(error) })
  }
  return new SidecarError('internal', message, { cause: error })
}

function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}

function readDetail(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error) || !('detail' in error) || typeof error.detail !== 'string')
    return {}
  try {
    return JSON.parse(error.detail) as Record<string, unknown>
  } catch {
    return {}
  }
}
