// The node's SharedStateManager as one worker sees it. In the broker every call is a message to the primary,
// and no call waits for an answer.
import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'

export interface Grant {
  readonly description: WaitGroup
  readonly grantId: number
  /** What caused the grant, for stats. */
  readonly source?: string
  /** The time from the hint to the grant, for stats. */
  readonly waitedMs?: number
}

export interface Coordinator {
  /** The number of waiters this worker now has for a group; 0 removes the worker from the group. */
  setWaiting(description: WaitGroup, count: number): void
  /**
   * Requests the group's in-flight lock. The grant arrives at once, or after the group's pop in flight. With
   * `unlessEmpty` it does not arrive while the primary knows that there is nothing to pop.
   */
  requestGrant(description: WaitGroup, options?: { readonly unlessEmpty?: boolean }): void
  /** The grant has arrived, and its pop takes long. */
  grantTaken(grant: Grant): void
  /** The pop has ended. `found` counts the messages. */
  releaseGroup(grant: Grant, outcome: GrantOutcome, found: number): void
  /** Messages were committed. */
  notifyMessageAvailable(woken: readonly WakeHint[]): void
  /** Lanes became free without new messages. */
  notifyPartitionFree(woken: readonly WakeHint[]): void
  /** A rate withholds messages until this time of the database's clock. */
  notifyBlocked(untilMs: number): void
  /** The connection broke before a write was answered: the write may have committed, or may still commit. */
  notifyOutcomeUnknown(): void
}
