/** A delivered message. */
export interface Message<Data = unknown> {
  readonly id: string
  readonly data: Data
  readonly queue: string
  /** Null: the message is independent of all others. */
  readonly partition: string | null
  readonly consumerGroup: string
  /** Starts at 1. */
  readonly attempt: number
  /** ISO 8601. */
  readonly createdAt: string
  readonly headers: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  /** The dedupeKey of the push, or a generated key. */
  readonly transactionId: string
  readonly partitionId: string
  /** The position in its partition. */
  readonly seq: number
  /** The lease, the same for all messages of one pop; null if they were acknowledged on delivery. */
  readonly leaseId: string | null
  /** Names this delivery of this message, for an ack; null if it was acknowledged on delivery. */
  readonly receipt: string | null
}

/** The W3C `traceparent` of the push. */
export function traceparentOf(message: Message): string | undefined {
  const value = message.headers?.traceparent
  return typeof value === 'string' ? value : undefined
}
