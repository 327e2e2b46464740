import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { Ignored, Name, Nullable } from './name.ts'

const delayBounds = { minimum: 0, maximum: limits.retryBackoffMsMax }

/** `completed`, or a time. The condition makes errors name the right field. */
const Until = Type.Unsafe<'completed' | { windowMs: number }>({
  if: { type: 'string' },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { enum: ['completed'] },
  else: Type.Object({
    windowMs: Type.Integer({ minimum: 1, maximum: limits.uniqueWindowMsMax }),
  }),
  description:
    '"completed" (default): the key is free again when the message has ended; { "windowMs": n }: after this time',
})

export const UniqueSchema = Type.Object(
  {
    key: Name(),
    scope: Type.Optional(
      Type.Enum(['queue', 'partition'], {
        description: 'Where the key is unique; queue by default',
      }),
    ),
    until: Type.Optional(Until),
    onConflict: Type.Optional(
      Type.Enum(['ignore', 'replace', 'reject'], {
        description: 'If another message has the key; ignore by default',
      }),
    ),
  },
  { description: 'At most one message at a time has this key' },
)

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
  priority: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.priorityMax,
      description: 'Higher first, 0 by default; only for messages without a partition',
    }),
  ),
  retryLimit: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.retryLimitMax,
      description:
        'How often this message is delivered again, instead of the retryLimit of its queue',
    }),
  ),
  retryBackoffMs: Type.Optional(
    Type.Unsafe<number | number[]>({
      ...delayBounds,
      type: ['integer', 'array'],
      items: { type: 'integer', ...delayBounds },
      minItems: 1,
      maxItems: 50,
      description:
        'A delay or a list of delays, instead of those of its queue; the last one repeats',
    }),
  ),
  ttlMs: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.ttlMsMax,
      description: 'It is not delivered later than this time after it is due',
    }),
  ),
  unique: Type.Optional(UniqueSchema),
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
  status: Type.Enum(['queued', 'duplicate', 'scheduled', 'replaced']),
  id: Type.String({
    description: 'Of the message; of the first one, if this is a duplicate or has replaced it',
  }),
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
