/** Milliseconds that only ever rise. */
export function nowMs(): number {
  return performance.now()
}

/** Since 1970. Only for what others tell as a date. */
export function wallMs(): number {
  return Date.now()
}

/** Resolves after so long, or as soon as the signal aborts. */
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

/** Beyond it, timers fire at once. */
const timerMsMax = 2_147_483_647

/** Runs when all that can happen now has happened, so that what belongs together goes together. */
export const afterThisTurn: (callback: () => void) => void =
  typeof setImmediate === 'function'
    ? (callback) => void setImmediate(callback)
    : (callback) => void Promise.resolve().then(() => queueMicrotask(callback))
