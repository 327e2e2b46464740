// Poison isolation: how the requests of a failed shared call are handled.
//
//   invalid, conflict   one request is bad: the call is split in halves until that one fails alone.
//   retryable           no request is bad: the same call is repeated.
//   lock timeout        a row stays locked: the requests move to LockedTargets, which isolates the target.
//   changed (RS001)     a row changes at this moment: the same call is repeated. A user's transaction may keep the row
//                       for any time, so after a few repetitions it counts as a lock timeout.
//   unavailable         all fail. If the statement may have reached the server, its outcome is unknown.
import { setTimeout as delay } from 'node:timers/promises'
import { classifyPostgresError, OutcomeUnknownError, provesNotCommitted } from '@rouse/database'
import { SidecarError } from '../sidecar-error.ts'

export interface IsolatedCall<R> {
  /** One SQL call for these requests. Resolves once it has settled all of them. */
  readonly call: (requests: readonly R[]) => Promise<void>
  readonly reject: (request: R, error: SidecarError) => void
  /** A lock timed out and nothing was written. If absent, the call is split and tried again. */
  readonly onLocked?: (requests: readonly R[]) => void
  /** Called for every failure that concerns the health of the database. */
  readonly onUnavailable: (error: SidecarError) => void
  /**
   * Whether the call writes. After a lost connection a read may be repeated, but a write may have committed.
   */
  readonly writes: boolean
  readonly random: () => number
}

const lockTimeout = '55P03'
const changed = 'RS001'
const attemptsMax = 8
/** Repetitions of a shared call. Requests for other queues wait for them, about 30 ms. */
const changedAttemptsMax = 5
const retryDelayMs = 2

/** Settles the requests of a call that has failed for the `attempt`th time. */
export async function isolateFailure<R>(
  error: unknown,
  requests: readonly R[],
  options: IsolatedCall<R>,
  attempt = 1,
): Promise<void> {
  const kind = classifyPostgresError(error)
  if (kind === 'unavailable' || kind === 'outcome_unknown') {
    const failure = connectionFailure(error, options.writes)
    options.onUnavailable(failure)
    for (const request of requests) options.reject(request, failure)
    return
  }
  const state = sqlState(error)
  const isLocked = state === lockTimeout || (state === changed && attempt >= changedAttemptsMax)
  if (options.onLocked !== undefined && isLocked) {
    options.onLocked(requests)
    return
  }
  if (requests.length > 1 && (kind !== 'retryable' || state === lockTimeout)) {
    const middle = Math.ceil(requests.length / 2)
    // One after the other: in parallel, each half could wait for locks of the other.
    await repeat(requests.slice(0, middle), options, 1)
    await repeat(requests.slice(middle), options, 1)
    return
  }
  if (kind === 'retryable' && attempt < attemptsMax) {
    await delay(options.random() * retryDelayMs * 2 ** attempt)
    await repeat(requests, options, attempt + 1)
    return
  }
  const failure = refusal(error, kind === 'retryable')
  for (const request of requests) options.reject(request, failure)
}

async function repeat<R>(
  requests: readonly R[],
  options: IsolatedCall<R>,
  attempt: number,
): Promise<void> {
  try {
    await options.call(requests)
  } catch (error) {
    await isolateFailure(error, requests, options, attempt)
  }
}

/** Repeats a call until it succeeds or fails permanently. A failed call must have no effect. */
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

/** The error of a failed read: a read can be repeated, so its outcome is never unknown. */
export function connectionFailureOf(error: unknown): SidecarError {
  const kind = classifyPostgresError(error)
  return kind === 'unavailable' || kind === 'outcome_unknown'
    ? connectionFailure(error, false)
    : refusal(error, kind === 'retryable')
}

function connectionFailure(error: unknown, writes: boolean): SidecarError {
  if (writes && (error instanceof OutcomeUnknownError || !provesNotCommitted(error))) {
    return new SidecarError(
      'outcome_unknown',
      'the connection to PostgreSQL was lost before the result arrived',
      {
        cause: error,
      },
    )
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
