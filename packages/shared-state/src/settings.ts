/** The settings of the wait path; the README lists their environment variables. */
export interface SharedStateSettings {
  /** The group backoff: how soon a group is polled again while wake-ups cannot be trusted. */
  readonly baseIntervalMs: number
  readonly maxIntervalMs: number
  readonly backoffThreshold: number
  readonly backoffMultiplier: number
  /** The poll interval while wake-ups can be trusted. */
  readonly idleIntervalMs: number
  /** How soon the end of a message is noticed without a hint: a plain ack sends none. */
  readonly completionIntervalMs: number
  /** How long an empty pop spares new waiters of its group their first query. */
  readonly emptyTrustedMs: number
  /** A poll verifies within this time that the pops after hints really found everything. */
  readonly verifyAfterMs: number
  /** How long a hint waits for pops of this node before peers get it. 0: not at all. */
  readonly holdHintMs: number
  readonly aggressivePollDurationMs: number
  readonly aggressiveExitThreshold: number
  readonly deliveryTimeoutMs: number
  readonly popDurationMaxMs: number
  /** A worker sends something every second; one that is silent for this long has stopped. */
  readonly sidecarSilentMs: number
  readonly contendedRetryMs: number
  /** After this many retries a contended group is retried every `baseIntervalMs`. */
  readonly contendedRetriesMax: number
  /** How long a group without waiters is remembered and advertised. */
  readonly groupLingerMs: number
  readonly groupsMax: number
  readonly sidecarsMax: number
  /** The maximum number of groups in one fallback query. The others follow at once in the next query. */
  readonly fallbackGroupsMax: number
  /**
   * With more groups than this, an event that concerns all of them causes one query instead of a pop for
   * each.
   */
  readonly wakeAllGroupsMax: number
  readonly statsGroupsMax: number
}

export const sharedStateDefaults: SharedStateSettings = Object.freeze({
  baseIntervalMs: 100,
  maxIntervalMs: 1_000,
  backoffThreshold: 3,
  backoffMultiplier: 2,
  idleIntervalMs: 5_000,
  completionIntervalMs: 1_000,
  emptyTrustedMs: 30_000,
  verifyAfterMs: 1_000,
  holdHintMs: 10,
  aggressivePollDurationMs: 60_000,
  aggressiveExitThreshold: 5,
  deliveryTimeoutMs: 100,
  popDurationMaxMs: 30_000,
  sidecarSilentMs: 2_500,
  contendedRetryMs: 5,
  contendedRetriesMax: 200,
  groupLingerMs: 10_000,
  groupsMax: 100_000,
  sidecarsMax: 256,
  fallbackGroupsMax: 10_000,
  wakeAllGroupsMax: 256,
  statsGroupsMax: 200,
})
