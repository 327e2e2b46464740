// The node's SharedStateManager as one worker sees it. In the broker every call is a message to the primary; nothing
// here waits.
import type { PopRequest } from './statements/pop.ts'
import type { Woken } from './statements/woken.ts'

/** The unit of backoff and of the in-flight lock: all waiters for the same messages in the same group. */
export interface GroupDescription {
  readonly source: PopRequest['source']
  readonly group: string
}

/**
 * How a granted pop ended. Contended is no empty: somebody held a lane, so it is asked again at once. Unused: nobody
 * waits here any more, so the grant belongs to another worker.
 */
export type GrantOutcome = 'messages' | 'empty' | 'contended' | 'unused' | 'error'

export interface Grant {
  readonly description: GroupDescription
  readonly grantId: number
}

export interface Coordinator {
  /** How many waiters this worker has for a group now; 0 forgets it. */
  setWaiting(description: GroupDescription, count: number): void
  /** Asks for the group's in-flight lock; the answer is a grant, now or after the one in flight. */
  requestCheck(description: GroupDescription): void
  /** The grant has arrived and its pop begins. */
  grantTaken(grant: Grant): void
  /** The pop has ended, and found so many messages. */
  releaseGroup(grant: Grant, outcome: GrantOutcome, found: number): void
  /** Messages were committed. */
  notifyMessageAvailable(woken: readonly Woken[]): void
  /** Lanes became free without new messages. */
  notifyPartitionFree(woken: readonly Woken[]): void
  /** A connection was lost before the answer to a write: anything may have been committed, or yet be. */
  notifyOutcomeUnknown(): void
}
