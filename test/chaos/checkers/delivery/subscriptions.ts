// Which messages a group must get, and which it must not: by where it began, and where a seek sent it.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { type Place, spanOf } from '../../history/operations.ts'
import type { OperatorRecord, QueueRecord } from '../../history/records.ts'

/** Between the clock that a subscription names and the one that messages are stored by. */
const clockMs = 100

/** The earliest moment at which it may have been stored. */
export function pushedFrom({ pushes }: Message): number {
  const possible = pushes.filter(({ outcome }) => outcome !== 'fail')
  return Math.min(...possible.map(({ start, delayMs }) => start + delayMs))
}

/** The latest; Infinity where one of its pushes was not answered. */
export function pushedTo({ pushes }: Message): number {
  const possible = pushes.filter(({ outcome }) => outcome !== 'fail')
  return Math.max(
    ...possible.map(({ outcome, end, delayMs, by }) =>
      outcome === 'ok' && delayMs === 0 && by !== 'sql' ? end : Number.POSITIVE_INFINITY,
    ),
  )
}

/** Whether the group must have been given a message that was stored. */
export function mustGet(
  history: History,
  queue: QueueRecord,
  group: string,
  message: Message,
): boolean {
  if (queue.groups.includes(group)) return true
  const subscribed = history.operations.subscriptions(queue.queue).get(group) ?? []
  const [first] = subscribed
  // Where it begins is known only if it asked once and heard.
  if (first === undefined || subscribed.length > 1 || first.outcome !== 'ok') return false
  const { from = 'all', end } = first
  if (from === 'all') return true
  const pushed = pushedFrom(message)
  return pushed > end || (from !== 'new' && pushed > from + clockMs)
}

/** Whether it was stored before the group's subscription begins, beyond doubt. */
export function isBeforeSubscription(history: History, message: Message, place: Place): boolean {
  const subscribed = history.operations.subscriptions(place.queue).get(place.group) ?? []
  const [first] = subscribed
  if (first === undefined || subscribed.length > 1 || first.from === 'all') return false
  const { from = 0, start } = first
  return pushedTo(message) < (typeof from === 'number' ? from - clockMs : start)
}

/** The last that moved the group, if it is certain which one that was. */
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

/** Whether the seek surely sent its group back before this message. */
export function sentBackTo(message: Message, { from, start }: OperatorRecord): boolean {
  if (typeof from !== 'number') return false
  return pushedFrom(message) > from + clockMs && pushedTo(message) < start
}
