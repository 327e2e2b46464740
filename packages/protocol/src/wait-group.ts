// Who waits for messages, what wakes them, and how their pop ended.

/** Where a pop takes messages from: one partition, any partition of a queue, or the queues of a namespace
 * and task. */
export type PopSource =
  | { readonly queue: string; readonly partition?: string | undefined }
  | { readonly namespace?: string | undefined; readonly task?: string | undefined }

/** All waiters for the same messages in the same consumer group: the unit of backoff and of the in-flight
 * lock. */
export interface WaitGroup {
  readonly source: PopSource
  readonly group: string
}

/**
 * The consumer group of requests that wait for the end of a message, not for messages. No user can choose its
 * name. Each worker knows only its own waiters, so each has a wait group of its own, whose name begins with
 * this one.
 */
export const completionGroup = '\u001f'

export function isCompletionGroup(group: string): boolean {
  return group.startsWith(completionGroup)
}

/** How a granted pop ended. `contended`: the pop found nothing but skipped lanes that other sessions had
 * locked, so it is repeated soon. `unused`: the worker had no waiters left when the grant arrived, so it did
 * not pop. A pop from a paused queue is `empty`. */
export type GrantOutcome = 'messages' | 'empty' | 'contended' | 'unused' | 'error'

/** A message may have become deliverable. SQL functions return hints as rows; nodes send them to their
 * peers. */
export interface WakeHint {
  readonly queue: string
  /** Null or absent: any partition. */
  readonly partition?: string | null | undefined
  /** Null or absent: every consumer group. */
  readonly group?: string | null | undefined
  /** A consumer group that needs no hint, because a waiter of it has got the message already. */
  readonly except?: string | undefined
  /** Null: the queue has none. Absent: not known, so any namespace may match. */
  readonly namespace?: string | null | undefined
  readonly task?: string | null | undefined
  /**
   * For a push: the number of messages added. For an ack that freed a lane: the number of messages that the
   * group can pop from it, 0 if there are none. Absent: not known.
   */
  readonly count?: number | undefined
}
