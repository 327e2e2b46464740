// What a sidecar reports about its work: once per SQL call, after the call has succeeded. Counters are made of
// these reports, so they cost the same for one request and for a hundred that share a call.
import type { AckItem, Lease, NewMessage, PushedMessage } from '@rouse/storage'
import type { AckOutcome } from './operation.ts'

export interface SidecarObserver {
  /** Results are in the order of the items. */
  pushed(items: readonly NewMessage[], results: readonly PushedMessage[]): void
  /** Also reports leases that came too late for their waiters and are released. */
  delivered(leases: readonly Lease[], delivery: Delivery): void
  /** Outcomes are in the order of the items. */
  acked(items: readonly AckItem[], outcomes: readonly AckOutcome[]): void
  /** A rate withholds messages of this queue until this time of the database's clock. */
  limited?(queue: string, group: string, untilMs: number, databaseTimeMs: number): void
  /** Messages were returned without charging an attempt. */
  released(leases: number): void
  /** A SQL call has ended, also if it failed. */
  called(statement: string, ms: number): void
}

export interface Delivery {
  /** The time of the call by the clock of the database. */
  readonly databaseTimeMs: number
  /** What caused the pop: the source of the grant, or `poll` for a pop that does not wait. */
  readonly source: string
  /** The consumer group, as stored. */
  readonly group: string
  /** From the hint to the grant; 0 without a hint. */
  readonly hintMs: number
  /** The duration of the call. */
  readonly popMs: number
  /** How long the pop that gets the lease had waited when the call began, and who it is. */
  readonly waitedMs: (lease: Lease) => number
  readonly holder: (lease: Lease) => string
  /** Whether the messages of a lease were acknowledged on delivery. */
  readonly isAutoAcked: (lease: Lease) => boolean
}
