// A ghost is a message that was delivered and then undone by a failover: its push was never ok, and after the
// crash the message was not seen again. This happens when a wait for the standby is cancelled: the primary
// then delivers messages that the standby does not have yet. Promise 7 allows ghosts, and rules that count
// messages leave them out.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { completion } from '../certainty.ts'

/** The ids of this message that are ghosts. */
export function ghostsOf(history: History, message: Message): ReadonlySet<number> {
  const ghosts = new Set<number>()
  if (message.deliveries.length === 0) return ghosts
  const isMoved = history.queues.get(message.queue)?.lettersOf !== undefined
  if (!isMoved && !message.pushes.some(({ outcome }) => outcome === 'unknown')) return ghosts
  for (const id of new Set(message.deliveries.map((delivery) => delivery.id))) {
    if (message.pushes.some((push) => push.outcome === 'ok' && push.id === id)) continue
    const deliveries = message.deliveries.filter((delivery) => delivery.id === id)
    const pushedFrom = isMoved
      ? Math.min(...deliveries.map(({ begins }) => begins))
      : Math.min(...message.pushes.map(({ start }) => start))
    const seenLast = Math.max(...deliveries.map(({ begins }) => begins))
    const undone = history.faults.some(
      ({ forgetsLeases, skipped, start, end }) =>
        forgetsLeases &&
        skipped === undefined &&
        end >= pushedFrom &&
        end >= seenLast &&
        start <= Math.max(...deliveries.map((d) => d.expiresMax)),
    )
    if (undone && deliveries.every((delivery) => completion(delivery) === undefined)) ghosts.add(id)
  }
  return ghosts
}
