/** Numbers of the wait path; each with its environment name in the README. */
export interface SharedStateSettings {
  /** The ladder: how soon a group is checked again while wakes cannot be trusted. */
  readonly baseIntervalMs: number
  readonly maxIntervalMs: number
  readonly backoffThreshold: number
  readonly backoffMultiplier: number
  /** How often groups are checked while they can. */
  readonly idleIntervalMs: number
  readonly aggressivePollDurationMs: number
  readonly aggressiveExitThreshold: number
  readonly deliveryTimeoutMs: number
  readonly popDurationMaxMs: number
  /** A worker says something every second; one that is silent for so long has stopped. */
  readonly sidecarSilentMs: number
  readonly contendedRetryMs: number
  /** From then on a contended group is retried at `baseIntervalMs`. */
  readonly contendedRetriesMax: number
  /** A group without waiters is remembered, and advertised, for so long. */
  readonly groupLingerMs: number
  readonly groupsMax: number
  readonly sidecarsMax: number
  /** In one fallback query. The rest come in the next, at once. */
  readonly fallbackGroupsMax: number
  /** With more groups than this, an event that may concern all is one query, not a pop for each. */
  readonly wakeAllGroupsMax: number
  readonly statsGroupsMax: number
}

export const sharedStateDefaults: SharedStateSettings = Object.freeze({
  baseIntervalMs: 100,
  maxIntervalMs: 1_000,
  backoffThreshold: 3,
  backoffMultiplier: 2,
  idleIntervalMs: 5_000,
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
