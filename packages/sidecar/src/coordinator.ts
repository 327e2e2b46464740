// The node's SharedStateManager as one worker sees it. In the broker every call is a message to the primary; nothing
// here waits.
import type { WaitGroup, WakeHint } from '@rouse/protocol'

/**
 * How a granted pop ended. Contended is no empty: somebody held a lane, so it is asked again at once. Unused: nobody
 * waits here any more, so the grant belongs to another worker.
 */
export type GrantOutcome = 'messages' | 'empty' | 'contended' | 'unused' | 'error'

export interface Grant {
  readonly description: WaitGroup
  readonly grantId: number
}

export interface Coordinator {
  /** How many waiters this worker has for a group now; 0 forgets it. */
  setWaiting(description: WaitGroup, count: number): void
  /** Asks for the group's in-flight lock; the answer is a grant, now or after the one in flight. */
  requestGrant(description: WaitGroup): void
  /** The grant has arrived and its pop begins. */
  grantTaken(grant: Grant): void
  /** The pop has ended, and found so many messages. */
  releaseGroup(grant: Grant, outcome: GrantOutcome, found: number): void
  /** Messages were committed. */
  notifyMessageAvailable(woken: readonly WakeHint[]): void
  /** Lanes became free without new messages. */
  notifyPartitionFree(woken: readonly WakeHint[]): void
  /** A connection was lost before the answer to a write: anything may have been committed, or yet be. */
  notifyOutcomeUnknown(): void
}
