import type { AckedItem } from '../history/records.ts'

export type HeldMessage = Pick<AckedItem, 'leaseId' | 'transactionId' | 'partitionId' | 'value'>

interface Pop {
  readonly group: string
  readonly messages: readonly HeldMessage[]
}

/**
 * The most leases to remember: far more than a client holds at once, so that late acks find their messages,
 * too.
 */
const leasesMax = 20_000

/** Maps lease tokens to messages, so that the record of an ack can name the value. */
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

  /** Call this when the ack of a message was accepted: the lease no longer covers the message. */
  ended(leaseId: string): void {
    if (this.#byLease.has(leaseId)) this.#ended.add(leaseId)
  }

  /** All unfinished messages of the same pop: the messages that an ack of the whole lease covers. */
  leaseOf(leaseId: string): readonly HeldMessage[] {
    const { messages = [] } = this.#byLease.get(leaseId)?.pop ?? {}
    return messages.filter((message) => !this.#ended.has(message.leaseId))
  }
}
