/** The timing of gossip. T is the heartbeat interval: at least `heartbeatMs`, and more in large clusters,
 * to bound the traffic. */
export interface GossipPreset {
  readonly heartbeatMs: number
  readonly heartbeatPerNodeMs: number
  /** The silence, in multiples of T, after which a member is suspect, after which peers are asked about it,
   * and after which it is dead. */
  readonly suspectAfter: number
  readonly askAfter: number
  readonly deadAfter: number
  /** The first retry interval for an address that does not answer; it doubles up to the maximum. */
  readonly helloFirstMs: number
  readonly helloMaxMs: number
  /** How long hints wait so that they are sent together. The first hint after a pause does not wait. */
  readonly hintHoldMs: number
  /** The longest time between the first and the second copy of a batch that no peer is asked to settle. */
  readonly rideAfterMs: number
  /** How long the peer that gets a hint first may take to settle it, in addition to the round trip. Then the
   * peer gets two more copies, and the others get the hint. The copies must arrive within 10 ms, even if
   * 30 % of all datagrams are lost. */
  readonly askMs: number
  readonly interestGapMs: number
  /** How long a withdrawn entry stays in our interest, because waiters often return. */
  readonly interestLingerMs: number
  /** When a leaving node sends leave messages, counted from the call of `leave`. */
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
  askMs: 3,
  interestGapMs: 20,
  interestLingerMs: 10_000,
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
