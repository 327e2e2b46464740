import type { Hint } from './hints/hint.ts'
import type { PeerState, PeerView } from './membership/peer-view.ts'
import type { GossipPreset } from './preset.ts'
import type { Address } from './transport/address.ts'
import type { Signer } from './wire/frame.ts'

export interface GossipCoreOptions {
  readonly clusterId: string
  /** Unique in the cluster, and the same after a restart. */
  readonly nodeId: string
  /** Greater at every start, for example from a sequence in the database. */
  readonly incarnation: number | bigint
  /** Where peers reach this node; known once the socket is bound. */
  readonly advertise: () => Address
  /** A KeyRing. */
  readonly signer: Signer
  readonly preset: GossipPreset
  /** At least 0, below 1. */
  readonly random: () => number
}

/** Reports to the sender of a hint that the waiters of this node take the messages, so that other nodes do not
 * get the hint. Call it only if that is true for every consumer group that this node advertises for the
 * scopes of the hint (`advertisedGroups`). Otherwise do not call it: after a few milliseconds the other nodes
 * get the hint. A second call has no effect. */
export type Settle<Arguments extends unknown[] = []> = (...now: Arguments) => void

/** The outputs of the core. They must not throw, and must not call the core synchronously, except for
 * `settle`. */
export interface GossipPorts {
  send(bytes: Uint8Array, to: Address): void
  /** `settle`: the sender asked this node before others. */
  onHint(hint: Hint, fromNodeId: string, settle?: Settle<[nowMs: number]>): void
  /** Called once, when another node first makes contact. From then on that node counts our hints, so every
   * hint must be passed to the core, even before the node joins. Earlier hints need not be passed. */
  onContact?(): void
  /** Between two `joined` of a node there is always a `dead` or `left`, even if the node restarted. */
  onPeer?(peer: PeerView, state: PeerEvent): void
  /** Hints from a peer were lost. Check everything once. */
  onHintsLost?(fromNodeId: string, count: number): void
  /**
   * Called when hints are sent to peers. Set only while someone watches. `isRepeat`: they got a copy before.
   */
  readonly onHintsSent?: HintsSent | undefined
  /** Every peer holds this version of our interest, or a later one. The version can go down. */
  onInterestEchoed?(version: number): void
  /** A peer waits for something else than before, so `peersWait` may have another result. */
  onPeerInterest?(): void
  /** A later incarnation of this node's id is in the cluster, so every peer ignores this process. Called once
   * per incarnation, never for recorded traffic. */
  onSuperseded?(incarnation: number): void
}

export type HintsSent = (
  toNodeIds: readonly string[],
  hints: readonly Hint[],
  isRepeat: boolean,
) => void

export type PeerEvent = 'joined' | PeerState
