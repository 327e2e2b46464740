import type { Lease, Scheduled } from './world.ts'

/** A user's transaction between BEGIN and its end. */
export interface OpenTransaction {
  readonly name: string
  readonly query: (text: string, values?: readonly unknown[]) => Promise<unknown[]>
  readonly end: () => void
  /** What COMMIT makes happen. */
  readonly enqueued: Scheduled[]
  readonly acked: { readonly lease: Lease; readonly seqs: readonly number[] }[]
  /** A call in it was refused: PostgreSQL rolls it back whatever is said. */
  isFailed: boolean
}
