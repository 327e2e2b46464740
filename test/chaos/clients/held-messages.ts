import type { AckedItem } from '../history/records.ts'

export type HeldMessage = Pick<AckedItem, 'leaseId' | 'transactionId' | 'partitionId' | 'value'>

interface Pop {
  readonly group: string
  readonly messages: readonly HeldMessage[]
}

/** Far more than a client holds at once: also zombies find what they were given. */
const leasesMax = 20_000

/** Which message a lease token stands for, so that the record of an ack can name the value. */
export class HeldMessages {
  readonly #byLease = new Map<string, { readonly message: HeldMessage; readonly pop: Pop }>()
  readonly #ended = new Set<string>()

  popped(group: string, messages: readonly HeldMessage[]): void {
    const pop = { group, messages }
    for (const message of messages) this.#byLease.set(message.leaseId, { message, pop })
    for (const lease of this.#byLease.keys()) {
      if (this.#byLease.size <= leasesMax) break
      this.#byLease.delete(lease)
      this.#ended.delete(lease)
    }
  }

  valueOf(leaseId: string): string {
    return this.#byLease.get(leaseId)?.message.value ?? ''
  }

  groupOf(leaseId: string): string | undefined {
    return this.#byLease.get(leaseId)?.pop.group
  }

  /** Its ack was taken: the lease holds it no more. */
  ended(leaseId: string): void {
    if (this.#byLease.has(leaseId)) this.#ended.add(leaseId)
  }

  /** All that the same pop was given and that has not ended: what an ack of the whole lease is about. */
  leaseOf(leaseId: string): readonly HeldMessage[] {
    const { messages = [] } = this.#byLease.get(leaseId)?.pop ?? {}
    return messages.filter((message) => !this.#ended.has(message.leaseId))
  }
}
