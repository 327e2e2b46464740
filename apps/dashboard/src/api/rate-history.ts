import type { QueueFigures } from './answers.ts'

const kept = 30
const histories = new Map<string, number[]>()
const none: readonly number[] = []

/** Remembers the rates of queues that are in use, for the small charts of the list. */
export function rememberRates(queues: readonly QueueFigures[]): void {
  for (const { queue, pushedPerSecond } of queues) {
    const own = histories.get(queue)
    if (own !== undefined) {
      own.push(pushedPerSecond)
      if (own.length > kept) own.shift()
    } else if (pushedPerSecond > 0) histories.set(queue, [0, pushedPerSecond])
  }
}

export function historyOf(queue: string): readonly number[] {
  return histories.get(queue) ?? none
}
