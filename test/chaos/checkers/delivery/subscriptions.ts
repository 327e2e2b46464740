// Which messages a group must get and which it must not: by its subscription and by seeks.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { type Place, spanOf } from '../../history/operations.ts'
import type { OperatorRecord, QueueRecord } from '../../history/records.ts'

/** The difference between the clock of a subscription and the clock of stored messages is at most this. */
const clockMs = 100

/** The earliest time at which the message may have been stored. */
export function pushedFrom({ pushes }: Message): number {
  const possible = pushes.filter(({ outcome }) => outcome !== 'fail')
  return Math.min(...possible.map(({ start, delayMs }) => start + delayMs))
}

/**
 * The latest time at which the message may have been stored; Infinity if one of its pushes has no response.
 */
export function pushedTo({ pushes }: Message): number {
  const possible = pushes.filter(({ outcome }) => outcome !== 'fail')
  return Math.max(
    ...possible.map(({ outcome, end, delayMs, by }) =>
      outcome === 'ok' && delayMs === 0 && by !== 'sql' ? end : Number.POSITIVE_INFINITY,
    ),
  )
}

/** Whether the group must get this stored message. */
export function mustGet(
  history: History,
  queue: QueueRecord,
  group: string,
  message: Message,
): boolean {
  if (queue.groups.includes(group)) return true
  const subscribed = history.operations.subscriptions(queue.queue).get(group) ?? []
  const [first] = subscribed
  // The start of a subscription is certain only if the group subscribed with a single request, and that
  // request succeeded.
  if (first === undefined || subscribed.length > 1 || first.outcome !== 'ok') return false
  const { from = 'all', end } = first
  if (from === 'all') return true
  const pushed = pushedFrom(message)
  return pushed > end || (from !== 'new' && pushed > from + clockMs)
}

/** Whether the message was certainly stored before the group's subscription starts. */
export function isBeforeSubscription(history: History, message: Message, place: Place): boolean {
  const subscribed = history.operations.subscriptions(place.queue).get(place.group) ?? []
  const [first] = subscribed
  if (first === undefined || subscribed.length > 1 || first.from === 'all') return false
  const { from = 0, start } = first
  return pushedTo(message) < (typeof from === 'number' ? from - clockMs : start)
}

/** The last seek that moved the group, if it is certain which one that was. */
export function lastSeek({ operations }: History, place: Place): OperatorRecord | undefined {
  const seeks = operations.of('seek', place)
  const last = seeks.reduce<OperatorRecord | undefined>(
    (latest, seek) => (latest === undefined || seek.start > latest.start ? seek : latest),
    undefined,
  )
  if (last === undefined || last.outcome !== 'ok') return undefined
  const others = seeks.filter((seek) => seek !== last)
  const isLast =
    others.every((seek) => spanOf(seek).to < last.start) &&
    operations.of('purge', place).length === 0
  return isLast ? last : undefined
}

/** Whether the seek certainly moved its group back to a position before this message. */
export function sentBackTo(message: Message, { from, start }: OperatorRecord): boolean {
  if (typeof from !== 'number') return false
  return pushedFrom(message) > from + clockMs && pushedTo(message) < start
}
