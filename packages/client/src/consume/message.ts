/** A message as it was delivered. */
export interface Message<Data = unknown> {
  readonly id: string
  readonly data: Data
  readonly queue: string
  readonly partition: string
  readonly consumerGroup: string
  /** 1 at first. */
  readonly attempt: number
  /** ISO 8601. */
  readonly createdAt: string
  readonly headers: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  /** The dedupeKey of the push, or what was made in its place. */
  readonly transactionId: string
  readonly partitionId: string
  /** The place in its partition. */
  readonly seq: number
  /** Names this message under its lease; null where it was acknowledged at delivery. */
  readonly leaseId: string | null
}

/** The W3C `traceparent` that a push was given. */
export function traceparentOf(message: Message): string | undefined {
  const value = message.headers?.traceparent
  return typeof value === 'string' ? value : undefined
}
