import { type Static, Type } from '../../typebox.ts'
import { Name, Nullable, Time } from '../name.ts'

export const messageCauses = [
  'push_slow',
  'scheduled',
  'paused',
  'partition_held',
  'rate_limit',
  'in_flight_limit',
  'window_buffer',
  'no_consumer',
  'late_wake',
  'delivery',
  'retry_delay',
  'slow_consumer',
  'waiting',
  'unknown',
] as const
export type MessageCause = (typeof messageCauses)[number]

export const messageSteps = [
  'received',
  'committed',
  'due',
  'hint',
  'grant',
  'popped',
  'answered',
  'failed',
  'expired',
  'acked',
] as const

export const MessageWhyQuerySchema = Type.Object({
  consumerGroup: Type.Optional(Name()),
  scope: Type.Optional(
    Type.Enum(['node', 'cluster'], {
      description: '`node` is for other nodes',
      default: 'cluster',
    }),
  ),
  leaseIds: Type.Optional(
    Type.String({
      description: 'for other nodes: leases whose acks are wanted, separated by commas',
    }),
  ),
})

const spanFields = {
  cause: Type.Enum(messageCauses),
  ms: Type.Number(),
  text: Type.String(),
}

/** Why one message took as long as it did. */
export const MessageWhyAnswerSchema = Type.Object({
  id: Type.String(),
  queue: Type.String(),
  partition: Nullable(Type.String()),
  consumerGroup: Nullable(Type.String()),
  state: Type.String(),
  totalMs: Type.Number(),
  summary: Type.String(),
  culprit: Nullable(
    Type.Object({ ...spanFields, action: Nullable(Type.String()) }, { additionalProperties: true }),
  ),
  spans: Type.Array(
    Type.Object({ ...spanFields, from: Time, to: Time }, { additionalProperties: true }),
  ),
  steps: Type.Array(
    Type.Object({
      step: Type.Enum(messageSteps),
      at: Time,
      ms: Type.Number(),
      node: Nullable(Type.String()),
      worker: Nullable(Type.Integer()),
      text: Type.String(),
      attempt: Type.Optional(Type.Integer()),
      source: Type.Optional(Type.String()),
      consumer: Type.Optional(Type.String()),
      status: Type.Optional(Type.String()),
      errorCode: Type.Optional(Nullable(Type.String())),
    }),
  ),
  recorded: Type.Enum(['full', 'partly', 'none']),
  notRecorded: Type.Array(Type.Object({ step: Type.Enum(messageSteps), text: Type.String() })),
  unreachable: Type.Array(Type.Object({ id: Type.String(), error: Type.String() })),
})
export type MessageWhyAnswer = Static<typeof MessageWhyAnswerSchema>
