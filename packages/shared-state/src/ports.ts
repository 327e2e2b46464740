import type { WaitGroup, WakeHint } from '@rouse/protocol'

/** The name of a wait group; see group-table.ts. */
export type GroupKey = string

/** A worker's pool. The id is unique among all workers this node ever had. */
export type SidecarId = string | number

/**
 * The source of a wake-up: a push on the worker that pops, on another worker, on another node; NOTIFY; a
 * timer; the previous pop; a fallback poll.
 */
export const wakeSources = ['local', 'ipc', 'udp', 'notify', 'timer', 'chain', 'fallback'] as const
export type WakeSource = (typeof wakeSources)[number]

/** A waiter's own first query is also a grant, but not a wake-up. */
export type GrantSource = WakeSource | 'request'

/** The side effects of the manager. It updates its own state before it calls them. */
export interface SharedStatePorts {
  /** Monotonic milliseconds. */
  readonly now: () => number
  /**
   * Gives a worker the group's lock. The worker then pops for all its waiters of the group. `waitedMs`: since the
   * hint arrived.
   */
  readonly grant: (
    sidecarId: SidecarId,
    group: WaitGroup,
    grantId: number,
    source: GrantSource,
    waitedMs: number,
  ) => void
  /**
   * Sends a hint to the peers: there are messages, or a lane is free. Waiters of this node are expected to
   * serve the consumer groups in `served`, so the hint is only for peers that wait for other groups.
   */
  readonly broadcast: (
    hint: WakeHint,
    kind: 'available' | 'free',
    served: ReadonlySet<string>,
  ) => void
  /** Sends the peers a hint that any queue may have messages. */
  readonly broadcastEverything: () => void
  /**
   * `interests()` changed. Call `interestEchoed` with the version once all peers hold it. Absent on a node
   * without peers.
   */
  readonly interestChanged?: (version: number) => void
}
