import type { WakeHint } from '@rouse/protocol'
import type { GroupKey } from './group-key.ts'

/** A worker's pool, by a name that no other worker of this node ever had. */
export type SidecarId = string | number

/** What woke a group: a push on the worker that pops, on another worker, on another node; NOTIFY; a
 * timer; the pop before; a fallback check. */
export const wakeSources = ['local', 'ipc', 'udp', 'notify', 'timer', 'chain', 'fallback'] as const
export type WakeSource = (typeof wakeSources)[number]

/** A waiter's own first query is a grant, too, but nothing woke it. */
export type GrantSource = WakeSource | 'request'

/** How a pop ended. `contended`: it found nothing but skipped what somebody held. `unused`: there was
 * no pop, because nobody waited any more when the grant arrived. A paused queue is `empty`. */
export type GrantOutcome = 'messages' | 'empty' | 'contended' | 'error' | 'unused'

/** What the manager needs of the world. All are called when its own state is already up to date. */
export interface SharedStatePorts {
  /** Milliseconds that never go back. */
  readonly now: () => number
  /** Tells a worker that it holds the group's lock and should pop for all its waiters of the group. */
  readonly grant: (
    sidecarId: SidecarId,
    key: GroupKey,
    grantId: number,
    source: GrantSource,
  ) => void
  /** Tells the peers: messages are new, or a lane is free. */
  readonly broadcast: (hint: WakeHint, kind: 'available' | 'free') => void
  /** Tells them that anything may be. */
  readonly broadcastEverything: () => void
  /** `interests()` changed. Call `interestEchoed` with the version once all peers hold it. Absent on a
   * node without peers. */
  readonly interestChanged?: (version: number) => void
}
