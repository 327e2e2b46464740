/** Monotonic milliseconds. */
export function nowMs(): number {
  return performance.now()
}

/** Milliseconds since 1970. Only to compare with dates of other systems, such as `Retry-After`. */
export function wallMs(): number {
  return Date.now()
}

/** Resolves after `ms`, or as soon as the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve()
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, Math.min(ms, timerMsMax))
    signal?.addEventListener('abort', end)
  })
}

/** `setTimeout` fires at once if the delay is longer. */
const timerMsMax = 2_147_483_647

/** Runs the callback after the current turn of the event loop, so that calls of one turn share a request. */
export const afterThisTurn: (callback: () => void) => void =
  typeof setImmediate === 'function'
    ? (callback) => void setImmediate(callback)
    : (callback) => void Promise.resolve().then(() => queueMicrotask(callback))
