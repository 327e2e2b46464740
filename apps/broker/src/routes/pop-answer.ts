// Writes the response of a pop. Payloads are JSON text and are sent unparsed.
import { type AckResult, encodeLeaseToken, transactionIdFor } from '@rouse/protocol'
import type { Lease, LeasedMessage } from '@rouse/storage'

export interface PopAnswerOptions {
  readonly consumerGroup: string
  /** Nothing is left to acknowledge, so there are no lease ids. */
  readonly autoAck: boolean
  /** The results of the acks, for a request that acknowledges before it fetches. */
  readonly acks?: readonly AckResult[] | undefined
}

export function popAnswer(leases: readonly Lease[], options: PopAnswerOptions): string {
  const { consumerGroup, autoAck, acks } = options
  const group = JSON.stringify(consumerGroup)
  const tail = acks === undefined ? '}' : `,"acks":${JSON.stringify(acks)}}`
  const first = leases[0]
  const firstMessage = first?.messages[0]
  if (first === undefined || firstMessage === undefined) {
    return `{"success":true,"queue":null,"consumerGroup":${group},"leaseId":null,"partition":null,"partitionId":null,"messages":[]${tail}`
  }
  let messages = ''
  for (const lease of leases) messages += leaseText(lease, group, autoAck)
  return (
    `{"success":true,"queue":${JSON.stringify(first.queue)},"consumerGroup":${group},` +
    `"leaseId":${autoAck ? 'null' : `"${tokenOf(first, firstMessage)}"`},` +
    `"partition":${JSON.stringify(first.partition)},"partitionId":"${first.partitionId}",` +
    `"messages":[${messages.slice(1)}]${tail}`
  )
}

/** Each message is preceded by a comma. */
function leaseText(lease: Lease, group: string, autoAck: boolean): string {
  const place =
    `,"partition":${JSON.stringify(lease.partition)},"partitionId":"${lease.partitionId}",` +
    `"queue":${JSON.stringify(lease.queue)}`
  const rest = `,"consumerGroup":${group},"attempt":${lease.attempt},"headers":`
  let text = ''
  for (const message of lease.messages) {
    text +=
      `,{"id":"${message.id}","transactionId":${JSON.stringify(transactionIdOf(lease, message))},` +
      `"traceId":${message.traceId === null ? 'null' : JSON.stringify(message.traceId)},` +
      `"data":${message.payload},"createdAt":"${new Date(message.createdAtMs).toISOString()}"` +
      `${place},"seq":${message.seq},` +
      `"leaseId":${autoAck ? 'null' : `"${tokenOf(lease, message)}"`}${rest}${message.headers ?? 'null'}}`
  }
  return text
}

function tokenOf(lease: Lease, message: LeasedMessage): string {
  return encodeLeaseToken({
    leaseId: lease.leaseId,
    partitionId: lease.partitionId,
    seq: message.seq,
    transactionId: transactionIdOf(lease, message),
  })
}

function transactionIdOf(lease: Lease, message: LeasedMessage): string {
  return message.transactionId ?? transactionIdFor(lease.partitionId, message.seq)
}
