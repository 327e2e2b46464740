import type { AckedItem, PoppedMessage } from '../history/records.ts'

export type HeldMessage = Pick<AckedItem, 'receipt' | 'transactionId' | 'partitionId' | 'value'>

interface Pop {
  readonly group: string
  readonly messages: readonly HeldMessage[]
}

/** The ids by which an ack may name a message. */
interface Named {
  readonly receipt?: string
  readonly leaseId?: string
  readonly transactionId?: string
  readonly partitionId?: string
}

/**
 * The most messages to remember: far more than a client holds at once, so that late acks find their messages,
 * too.
 */
const messagesMax = 20_000

/** Maps receipts and lease ids to messages, so that the record of an ack can name the value. */
export class HeldMessages {
  readonly #byReceipt = new Map<string, { readonly message: HeldMessage; readonly pop: Pop }>()
  readonly #byLease = new Map<string, Pop>()
  readonly #ended = new Set<string>()

  popped(group: string, messages: readonly PoppedMessage[]): void {
    const held = messages.map(({ receipt, transactionId, partitionId, value }) => {
      return { receipt, transactionId, partitionId, value }
    })
    const pop = { group, messages: held }
    for (const message of held) this.#byReceipt.set(message.receipt, { message, pop })
    for (const { leaseId } of messages) this.#byLease.set(leaseId, pop)
    forgetOldest(this.#byLease)
    for (const receipt of forgetOldest(this.#byReceipt)) this.#ended.delete(receipt)
  }

  find({ receipt, leaseId, transactionId, partitionId }: Named): HeldMessage | undefined {
    if (receipt !== undefined) return this.#byReceipt.get(receipt)?.message
    return this.#byLease
      .get(leaseId ?? '')
      ?.messages.find(
        (message) => message.transactionId === transactionId && message.partitionId === partitionId,
      )
  }

  groupOf(receipt: string): string | undefined {
    return this.#byReceipt.get(receipt)?.pop.group
  }

  /** The receipt of a message of the lease. */
  receiptIn(leaseId: string): string {
    return this.#byLease.get(leaseId)?.messages[0]?.receipt ?? leaseId
  }

  /** Call this when the ack of a message was accepted: the lease no longer covers the message. */
  ended(receipt: string): void {
    if (this.#byReceipt.has(receipt)) this.#ended.add(receipt)
  }

  /** All unfinished messages of the pop: the messages that an ack of the whole lease covers. */
  leaseOf(leaseId: string): readonly HeldMessage[] {
    const { messages = [] } = this.#byLease.get(leaseId) ?? {}
    return messages.filter(({ receipt }) => !this.#ended.has(receipt))
  }
}

function forgetOldest(map: Map<string, unknown>): string[] {
  const forgotten: string[] = []
  for (const key of map.keys()) {
    if (map.size <= messagesMax) break
    map.delete(key)
    forgotten.push(key)
  }
  return forgotten
}
