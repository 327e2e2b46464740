import type { RouseError } from '@rouse/protocol'
import type { Lease, LeasedMessage } from '@rouse/storage'
import type { PayloadCipher } from './payload-cipher.ts'

export interface OpenedLeases {
  /** Payloads are JSON text. Messages that cannot be decrypted are left out. */
  readonly leases: readonly Lease[]
  readonly unreadable: readonly UnreadableMessage[]
}

export interface UnreadableMessage {
  readonly lease: Lease
  readonly message: LeasedMessage
  readonly error: Error
}

/**
 * Decrypts the payloads of encrypted queues. Throws `encryption_unavailable` if this node lacks the key,
 * because another node may have it. A damaged payload cannot be decrypted on any node. It is returned as
 * unreadable, so that the other messages can still be delivered.
 */
export function openLeases(
  leases: readonly Lease[],
  cipher: Pick<PayloadCipher, 'open'>,
): OpenedLeases {
  const unreadable: UnreadableMessage[] = []
  const opened = leases.map((lease) => ({
    ...lease,
    messages: lease.messages.flatMap((message): LeasedMessage[] => {
      const { id, payload } = message
      try {
        return [{ ...message, payload: cipher.open({ queue: lease.queue, id }, payload) }]
      } catch (thrown) {
        const error = thrown as RouseError
        if (error.code === 'encryption_unavailable') throw error
        unreadable.push({ lease, message, error })
        return []
      }
    }),
  }))
  return { leases: opened.filter(({ messages }) => messages.length > 0), unreadable }
}
