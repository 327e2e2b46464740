import type { Hint } from './hints/hint.ts'
import type { PeerState, PeerView } from './membership/peer-view.ts'
import type { GossipPreset } from './preset.ts'
import type { Address } from './transport/address.ts'
import type { Signer } from './wire/frame.ts'

export interface GossipCoreOptions {
  readonly clusterId: string
  /** Unique in the cluster, the same after a restart. */
  readonly nodeId: string
  /** Greater with every start; a sequence in the database is a good source. */
  readonly incarnation: number | bigint
  /** Where peers reach this node; known once the socket is bound. */
  readonly advertise: () => Address
  /** A KeyRing. */
  readonly signer: Signer
  readonly preset: GossipPreset
  /** At least 0, below 1. */
  readonly random: () => number
}

/** What the core does to the world. None of these may throw, or call the core back at once. */
export interface GossipPorts {
  send(bytes: Uint8Array, to: Address): void
  onHint(hint: Hint, fromNodeId: string): void
  /** `joined` and `dead` or `left` come in pairs; a node that restarted is dead before it joins again. */
  onPeer?(peer: PeerView, state: PeerEvent): void
  /** A peer sent hints that never came. Look at everything once. */
  onHintsLost?(fromNodeId: string, count: number): void
  /** Every peer holds this version of our interest, or a later one. It can be less than before. */
  onInterestEchoed?(version: number): void
  /** A later life of this node's id is in the cluster: this one is passed over by everybody. Called once for
   * each such life, never for what was recorded. */
  onSuperseded?(incarnation: number): void
}

export type PeerEvent = 'joined' | PeerState
