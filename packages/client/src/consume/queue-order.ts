// What a worker must know about its queue: which messages are handled in order, and whether it keeps results.
import type { Message } from './message.ts'

export interface QueueOrder {
  readonly ordered: boolean
  /** A failed message holds back the messages behind it. */
  readonly holds: boolean
  /** Only messages with a partition are ordered. */
  readonly isKeyed: boolean
}

/** For a queue whose options are not known: every message with a partition is handled in order. */
export const safeOrder: QueueOrder = { ordered: true, holds: true, isKeyed: true }

/** The order that the user set for all messages. */
export function givenOrder(ordered: boolean): QueueOrder {
  return { ordered, holds: ordered, isKeyed: false }
}

export function orderOf({ ordering, onFailure }: Readonly<Record<string, unknown>>): QueueOrder {
  const ordered = ordering !== 'none'
  return { ordered, holds: ordered && onFailure !== 'skip', isKeyed: ordering !== 'partition' }
}

/** Whether the queue records every success, so that a result costs it little more. */
export function keepsResults(options: Readonly<Record<string, unknown>>): boolean {
  return options.history === 'all' && options.encryptionEnabled !== true
}

export function isOrdered({ ordered, isKeyed }: QueueOrder, { partition }: Message): boolean {
  return ordered && !(isKeyed && partition === null)
}

export function holdsOthers(order: QueueOrder, message: Message): boolean {
  return order.holds && isOrdered(order, message)
}
