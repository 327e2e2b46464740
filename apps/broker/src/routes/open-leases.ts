import type { RouseError } from '@rouse/protocol'
import type { AckItem, Lease, LeasedMessage } from '@rouse/storage'
import { isSealed, type PayloadCipher } from '../encryption/payload-cipher.ts'

export interface OpenedLeases {
  /** Payloads are JSON text. Messages that cannot be decrypted are left out. */
  readonly leases: readonly Lease[]
  readonly unreadable: readonly UnreadableMessage[]
}

export interface UnreadableMessage {
  readonly id: string
  readonly error: Error
  /** Fails the message, so that it is retried and dead-lettered like any other that cannot be processed. */
  readonly ending: AckItem
}

/**
 * Decrypts the payloads of encrypted queues. Throws `encryption_unavailable` if this node lacks the key,
 * because another one may have it. A damaged payload opens on no node and does not hold back the others.
 */
export function openLeases(
  leases: readonly Lease[],
  cipher: Pick<PayloadCipher, 'open'>,
): OpenedLeases {
  if (!leases.some(({ messages }) => messages.some(({ payload }) => isSealed(payload)))) {
    return { leases, unreadable: [] }
  }
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
        unreadable.push(unreadableMessage(lease, message, error))
        return []
      }
    }),
  }))
  return { leases: opened.filter(({ messages }) => messages.length > 0), unreadable }
}

export function unreadableMessage(
  { leaseId, partitionId }: Lease,
  { id, seq }: LeasedMessage,
  error: Error,
): UnreadableMessage {
  const ending = {
    leaseId,
    message: { partitionId, seq },
    status: 'failed',
    errorCode: 'message_unreadable',
    errorMessage: error.message,
  } as const
  return { id, error, ending }
}
