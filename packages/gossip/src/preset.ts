/** The pace of gossip. T below is the interval of heartbeats: at least `heartbeatMs`, and more in a
 * cluster so large that everybody would be talking all the time. */
export interface GossipPreset {
  readonly heartbeatMs: number
  readonly heartbeatPerNodeMs: number
  /** In T: silence until a member is suspect, until others are asked about it, until it is dead. */
  readonly suspectAfter: number
  readonly askAfter: number
  readonly deadAfter: number
  /** An address that does not answer is tried again after this, then after twice that, … */
  readonly helloFirstMs: number
  readonly helloMaxMs: number
  /** Hints wait this long for company, except for the first one. */
  readonly hintHoldMs: number
  /** Hints are sent a second time with the next ones, or after this. */
  readonly rideAfterMs: number
  readonly interestGapMs: number
  /** How long peers are told of an interest that has ended; it often returns. */
  readonly interestLingerMs: number
  /** In a cluster of so many nodes everybody gets every hint. */
  readonly everyoneMax: number
  /** When a leaving node says so. */
  readonly leaveAtMs: readonly number[]
}

const lan: GossipPreset = {
  heartbeatMs: 500,
  heartbeatPerNodeMs: 2,
  suspectAfter: 3,
  askAfter: 8,
  deadAfter: 10,
  helloFirstMs: 100,
  helloMaxMs: 15_000,
  hintHoldMs: 1,
  rideAfterMs: 2,
  interestGapMs: 20,
  interestLingerMs: 10_000,
  everyoneMax: 8,
  leaveAtMs: [0, 20, 60],
}

export const presets = {
  loopback: { ...lan, heartbeatMs: 250, leaveAtMs: [0, 5, 15] },
  lan,
  wan: {
    ...lan,
    heartbeatMs: 1_000,
    helloFirstMs: 400,
    rideAfterMs: 20,
    interestGapMs: 100,
    leaveAtMs: [0, 100, 300],
  },
} as const satisfies Record<string, GossipPreset>

export type PresetName = keyof typeof presets
