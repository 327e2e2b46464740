import type { RouseError } from '@rouse/protocol'
import type { AckItem, Lease, LeasedMessage } from '@rouse/storage'
import { isSealed, type PayloadCipher } from '../encryption/payload-cipher.ts'

export interface OpenedLeases {
  /** With payloads as JSON text; messages that do not open are left out. */
  readonly leases: readonly Lease[]
  readonly unreadable: readonly UnreadableMessage[]
}

export interface UnreadableMessage {
  readonly id: string
  readonly error: Error
  /** Fails it, so that it is retried and dead-lettered like any message that its consumer cannot handle. */
  readonly ending: AckItem
}

/**
 * Decrypts what is encrypted. Throws `encryption_unavailable` where this node lacks the key: another one may have it. A payload
 * that is damaged opens nowhere, and is no reason to keep the others back.
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
