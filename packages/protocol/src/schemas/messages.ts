import { limits, requestDefaults } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { AttemptSchema } from './dead-letters.ts'
import { Name, NameOrEmpty, Nullable, offsetFields, spanFields, Time } from './name.ts'

/** The status of a message for a consumer group. `scheduled`: the message is not in the log yet, and every
 * group has this status. */
export const messageStatuses = [
  'pending',
  'leased',
  'retrying',
  'completed',
  'dead',
  'scheduled',
  'cancelled',
] as const

/** The states of a message. If its groups differ, its state is the first of this list that a group has. */
export const messageStates = [
  'ready',
  'leased',
  'retrying',
  'dead',
  'completed',
  'scheduled',
  'cancelled',
] as const
export type MessageState = (typeof messageStates)[number]

/** Old names of statuses, which existing clients send. */
export const messageStatusAliases = { processing: 'leased', dead_letter: 'dead' } as const

const errorCode = Type.Optional(
  Type.String({ description: 'The last error; only with the states `retrying` and `dead`' }),
)

/** Only for the documentation. In a query string all values are text. */
export const MessagesQuerySchema = Type.Object({
  queue: Name(),
  partition: Type.Optional(Name()),
  consumerGroup: Type.Optional(Name('The group whose status is shown')),
  status: Type.Optional(
    Type.Enum([...messageStatuses, 'processing', 'dead_letter'], {
      description: '`processing` is `leased`, `dead_letter` is `dead`',
    }),
  ),
  state: Type.Optional(
    Type.Enum(messageStates, { description: 'As status, where `ready` is `pending`' }),
  ),
  errorCode,
  cursor: Type.Optional(
    Type.String({ description: 'From the last response, or `end` for new messages only' }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.pageSizeMax })),
  offset: offsetFields.offset,
  ns: Type.Optional(NameOrEmpty()),
  namespace: Type.Optional(NameOrEmpty()),
  task: Type.Optional(NameOrEmpty()),
  ...spanFields,
  follow: Type.Optional(
    Type.Boolean({
      description: 'Returns messages in order of creation, without status, and always a cursor',
    }),
  ),
})
export type MessagesQuery = Static<typeof MessagesQuerySchema>

/** The messages to cancel. Only for the documentation, as above. */
export const CancelQuerySchema = Type.Object({
  queue: Name(),
  state: Type.Enum(['ready', 'retrying', 'scheduled']),
  partition: Type.Optional(Name()),
  consumerGroup: Type.Optional(Name('The group whose state counts')),
  errorCode,
  ...spanFields,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.pageSizeMax })),
  cursor: Type.Optional(Type.String({ description: 'From the last response' })),
  dryRun: Type.Optional(Type.Boolean({ description: 'Only counts the messages' })),
})
export type CancelQuery = Static<typeof CancelQuerySchema>

export const CancelManyAnswerSchema = Type.Object({
  matched: Type.Integer({ description: 'Messages of this step; sum up the steps for a total' }),
  cancelled: Type.Integer({
    description: 'How many were cancelled; other matched ones were delivered or removed meanwhile',
  }),
  cursor: Nullable(Type.String({ description: 'For the next step; null at the end' })),
})
export type CancelManyAnswer = Static<typeof CancelManyAnswerSchema>

const messageFields = {
  id: Type.String(),
  transactionId: Type.String(),
  traceId: Nullable(Type.String()),
  queue: Type.String(),
  partition: Nullable(Type.String()),
  partitionId: Nullable(Type.String()),
  seq: Nullable(Type.Integer()),
  createdAt: Time,
  dueAt: Nullable(Time),
  data: Type.Unknown(),
  headers: Nullable(Type.Record(Type.String(), Type.Unknown())),
}

export const MessagesAnswerSchema = Type.Object({
  messages: Type.Array(
    Type.Object({
      ...messageFields,
      status: Type.Optional(Type.Enum(messageStatuses)),
      state: Type.Optional(Type.Enum(messageStates)),
    }),
  ),
  cursor: Nullable(
    Type.String({ description: 'Null at the end; a page before the end may be empty' }),
  ),
})
export type MessagesAnswer = Static<typeof MessagesAnswerSchema>

const groupFields = {
  consumerGroup: Type.String(),
  status: Type.Enum(messageStatuses),
  state: Type.Enum(messageStates),
  attempts: Type.Integer(),
  leaseExpiresAt: Nullable(Time),
  holder: Nullable(Type.String()),
  consumer: Nullable(Type.String({ description: 'The name that the holder gave itself' })),
  deliveredAt: Nullable(Time),
  nextTryAt: Nullable(Time),
  errorCode: Nullable(Type.String()),
  errorMessage: Nullable(Type.String()),
  result: Type.Unknown({ description: 'Of the ack; null if it had none' }),
  completedAt: Nullable(Time),
  progress: Type.Unknown({ description: 'The last report of a holder; null if there is none' }),
  progressAt: Nullable(Time),
  history: Type.Array(AttemptSchema),
}

export const MessageAnswerSchema = Type.Object({
  ...messageFields,
  groups: Type.Array(Type.Object(groupFields)),
})
export type MessageAnswer = Static<typeof MessageAnswerSchema>

export const MessageByIdAnswerSchema = Type.Object({
  ...messageFields,
  state: Type.Enum(messageStates),
  cancelledAt: Nullable(Time),
  keptUntil: Nullable(Time),
  unique: Nullable(
    Type.Object(
      {
        key: Type.String(),
        scope: Type.Enum(['queue', 'partition']),
        until: Type.Union([Type.Literal('completed'), Type.Object({ windowMs: Type.Integer() })]),
        held: Type.Boolean({
          description: 'Whether a push with the key is a duplicate of this message now',
        }),
      },
      { description: 'The unique key that it took, as long as no other message has taken it' },
    ),
  ),
  priority: Type.Integer(),
  retryLimit: Nullable(Type.Integer({ description: 'Null: that of the queue' })),
  retryBackoffMs: Nullable(Type.Array(Type.Integer(), { description: 'Null: that of the queue' })),
  expiresAt: Nullable(Type.String({ format: 'date-time', description: 'From its ttlMs' })),
  firstDeliveredAt: Nullable(Time),
  completedAt: Nullable(Time),
  result: Type.Unknown(),
  progress: Type.Unknown(),
  attempts: Type.Array(Type.Object({ ...AttemptSchema.properties, consumerGroup: Type.String() })),
  groups: Type.Array(Type.Object(groupFields)),
})
export type MessageByIdAnswer = Static<typeof MessageByIdAnswerSchema>

/** Only for the documentation, as above. */
export const MessageByIdQuerySchema = Type.Object({
  wait: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Waits until the message has ended, or the time is over',
    }),
  ),
  timeout: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.popTimeoutMsMax,
      default: requestDefaults.popTimeoutMs,
      description: 'How long to wait, in ms',
    }),
  ),
  consumerGroup: Type.Optional(
    Name('The group that must have ended it; without it, all groups that exist at the request'),
  ),
})
export type MessageByIdQuery = Static<typeof MessageByIdQuerySchema>

export const ProgressBodySchema = Type.Object({
  receipt: Type.String({ description: 'The receipt of the delivered message' }),
  progress: Type.Unknown({
    description: `How far the consumer is: any JSON, at most ${limits.progressBytesMax} bytes`,
  }),
})
export type ProgressBody = Static<typeof ProgressBodySchema>

export const ProgressAnswerSchema = Type.Object({
  id: Type.String(),
  success: Type.Literal(true),
})
export type ProgressAnswer = Static<typeof ProgressAnswerSchema>

export const CancelAnswerSchema = Type.Object({ cancelled: Type.Literal(true) })

export const RunNowAnswerSchema = Type.Object({
  id: Type.String(),
  state: Type.Enum(['scheduled', 'retrying'], { description: 'The state before; it is due now' }),
})
