import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { Ignored, Name, Nullable } from './name.ts'

export const PushItemSchema = Type.Object({
  queue: Name(),
  partition: Type.Optional(
    Name(
      'Messages of a partition are in order; a message without one is independent of all others',
    ),
  ),
  payload: Type.Unknown({ description: 'Any JSON value; it is delivered unchanged' }),
  dedupeKey: Type.Optional(Name('A repeat of this key in its partition is a duplicate')),
  transactionId: Type.Optional(Name('The older name of dedupeKey')),
  traceId: Type.Optional(Name()),
  delayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.delayMsMax })),
  runAt: Type.Optional(Type.String({ description: 'With a time zone; not together with delayMs' })),
  headers: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  producerSub: Ignored(),
  trace_id: Ignored(),
})
export type PushItem = Static<typeof PushItemSchema>

export const PushBodySchema = Type.Object({
  items: Type.Array(PushItemSchema, { maxItems: limits.pushItemsMax }),
  repeatAfterMs: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Time since the first try of this request, whose outcome is unknown',
    }),
  ),
})
export type PushBody = Static<typeof PushBodySchema>

export const PushedItemSchema = Type.Object({
  index: Type.Integer(),
  status: Type.Enum(['queued', 'duplicate', 'scheduled']),
  id: Type.String({ description: 'Of the message; of the first one, if this is a duplicate' }),
  queue: Type.String(),
  partition: Nullable(Type.String({ description: 'Null: the message is independent' })),
  partitionId: Type.String(),
  dedupeKey: Nullable(Type.String({ description: 'As given' })),
  message_id: Type.String(),
  transaction_id: Type.String(),
  partition_id: Type.String(),
  queueName: Type.String(),
})
export type PushedItem = Static<typeof PushedItemSchema>

/** The response with 201: one result per item, in the same order. */
export const PushAnswerSchema = Type.Array(PushedItemSchema)
export type PushAnswer = Static<typeof PushAnswerSchema>
