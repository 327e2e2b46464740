const pauseMsFirst = 50
const pauseMsMax = 1_000
const streakMs = 10_000
const queuesMax = 1_000

/**
 * How long a worker keeps messages that it cannot deliver (usually for lack of a key) before it gives them
 * back: not at all the first time, then twice as long each time. Otherwise its next waiter would get them
 * again at once, in a tight loop. No attempt is charged: that would dead-letter or drop a whole queue for a
 * key that is missing for an hour.
 */
export function createGiveBackPace(): (queue: string, nowMs: number) => number {
  const streaks = new Map<string, { readonly pauseMs: number; readonly atMs: number }>()
  return (queue, nowMs) => {
    const last = streaks.get(queue)
    const isStreak = last !== undefined && nowMs - last.atMs < streakMs
    const pauseMs = isStreak ? Math.min(Math.max(last.pauseMs * 2, pauseMsFirst), pauseMsMax) : 0
    if (streaks.size >= queuesMax) streaks.clear()
    streaks.set(queue, { pauseMs, atMs: nowMs })
    return pauseMs
  }
}
