import type { Lease, Scheduled } from './world.ts'

/** A user's transaction between BEGIN and its end. */
export interface OpenTransaction {
  readonly name: string
  readonly query: (text: string, values?: readonly unknown[]) => Promise<unknown[]>
  readonly end: () => void
  /** The effects of COMMIT. */
  readonly enqueued: Scheduled[]
  readonly acked: { readonly lease: Lease; readonly seqs: readonly number[] }[]
  /** True if a call in the transaction failed, so that PostgreSQL rolls it back even on COMMIT. */
  isFailed: boolean
}
