import type { Lease } from '@rouse/storage'

export interface DeliveredLease {
  /** A partition of the lease. */
  readonly partitionId: string
  readonly messages: number
  readonly atMs: number
}

const leasesMax = 10_000

/** The last leases that a worker has delivered. */
export class DeliveredLeases {
  readonly #leases = new Map<string, DeliveredLease>()

  add({ leaseId, partitionId, messages }: Lease, atMs: number): void {
    const known = this.#leases.get(leaseId)
    const count = messages.length + (known?.messages ?? 0)
    this.#leases.set(leaseId, { partitionId, messages: count, atMs })
    if (this.#leases.size <= leasesMax) return
    const oldest = this.#leases.keys().next().value
    if (oldest !== undefined) this.#leases.delete(oldest)
  }

  get(leaseId: string): DeliveredLease | undefined {
    return this.#leases.get(leaseId)
  }
}
