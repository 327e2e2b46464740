import { limits, requestDefaults } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { AckResultSchema, AckSchema } from './ack.ts'
import { Name, NameOrEmpty, Nullable, Time } from './name.ts'

export const subscriptionModes = ['all', 'new'] as const

/** Old names of the modes, which existing clients send. */
export const subscriptionModeAliases = { 'new-only': 'new', from_beginning: 'all' } as const

const subscriptionWords = [
  ...subscriptionModes,
  ...(Object.keys(subscriptionModeAliases) as (keyof typeof subscriptionModeAliases)[]),
]

export const SubscriptionMode = () =>
  Type.Enum(subscriptionWords, { description: '`new-only` is `new`, `from_beginning` is `all`' })

const popFields = {
  batch: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limits.batchMax, default: requestDefaults.batch }),
  ),
  wait: Type.Optional(Type.Boolean({ default: false })),
  timeout: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.popTimeoutMsMax,
      default: requestDefaults.popTimeoutMs,
      description: 'How long to wait, in ms',
    }),
  ),
  consumerGroup: Type.Optional(Type.String({ ...Name(), default: requestDefaults.consumerGroup })),
  consumer: Type.Optional(
    Name('The name of the consumer, shown with its leases, attempts and dead letters'),
  ),
  autoAck: Type.Optional(Type.Boolean({ default: false })),
  partitions: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.partitionsMax,
      default: requestDefaults.partitions,
      description: 'The maximum number of partitions to take messages from',
    }),
  ),
  subscriptionMode: Type.Optional(SubscriptionMode()),
  subscriptionFrom: Type.Optional(
    Type.String({
      description: '`now` or a time with a time zone; takes precedence over subscriptionMode',
    }),
  ),
  leaseSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.leaseSecondsMax })),
  leasePerMessage: Type.Optional(
    Type.Boolean({
      default: false,
      description: `Each message gets its own leaseId; one message of an ordered partition at most, and batch is at most ${limits.leasesPerMessageMax}`,
    }),
  ),
}

const selectorFields = {
  namespace: Type.Optional(NameOrEmpty()),
  task: Type.Optional(NameOrEmpty()),
}

/**
 * Only for the documentation. In a query string all values are text: `readPopQuery` validates them, not Ajv.
 */
export const PopQuerySchema = Type.Object({ ...popFields, ...selectorFields })
export type PopQuery = Static<typeof PopQuerySchema>

/** `POST` on a pop path: acknowledges and fetches in one request. */
export const PopBodySchema = Type.Object({
  ...popFields,
  ...selectorFields,
  acks: Type.Optional(Type.Array(AckSchema, { maxItems: limits.acknowledgmentsMax })),
})
export type PopBody = Static<typeof PopBodySchema>

export const PoppedMessageSchema = Type.Object({
  id: Type.String(),
  transactionId: Type.String(),
  traceId: Nullable(Type.String()),
  data: Type.Unknown(),
  createdAt: Time,
  partition: Nullable(Type.String({ description: 'Null: the message is independent' })),
  partitionId: Type.String(),
  queue: Type.String(),
  seq: Type.Integer(),
  leaseId: Nullable(
    Type.String({
      description:
        'The same for all messages of the pop, unless leasePerMessage is given. Null with autoAck: there is nothing to ack',
    }),
  ),
  receipt: Nullable(Type.String({ description: 'Names this delivery of this message in an ack' })),
  consumerGroup: Type.String(),
  attempt: Type.Integer(),
  headers: Nullable(Type.Record(Type.String(), Type.Unknown())),
})
export type PoppedMessage = Static<typeof PoppedMessageSchema>

/** The response with 200. Without messages and without ack results, the response is a 204 without a body. */
export const PopAnswerSchema = Type.Object({
  success: Type.Literal(true),
  queue: Nullable(Type.String()),
  consumerGroup: Type.String(),
  leaseId: Nullable(Type.String()),
  partition: Nullable(Type.String()),
  partitionId: Nullable(Type.String()),
  messages: Type.Array(PoppedMessageSchema),
  acks: Type.Optional(Type.Array(AckResultSchema)),
})
export type PopAnswer = Static<typeof PopAnswerSchema>
