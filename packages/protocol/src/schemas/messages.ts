import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { FailedAttemptSchema } from './dead-letters.ts'
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
] as const

/** The words of existing clients for a status. */
export const messageStatusAliases = { processing: 'leased', dead_letter: 'dead' } as const

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
    Type.Object({ ...messageFields, status: Type.Optional(Type.Enum(messageStatuses)) }),
  ),
  cursor: Nullable(
    Type.String({ description: 'Null at the end; a page before the end may be empty' }),
  ),
})
export type MessagesAnswer = Static<typeof MessagesAnswerSchema>

export const MessageAnswerSchema = Type.Object({
  ...messageFields,
  groups: Type.Array(
    Type.Object({
      consumerGroup: Type.String(),
      status: Type.Enum(messageStatuses),
      attempts: Type.Integer(),
      leaseExpiresAt: Nullable(Time),
      holder: Nullable(Type.String()),
      nextTryAt: Nullable(Time),
      errorCode: Nullable(Type.String()),
      errorMessage: Nullable(Type.String()),
      history: Type.Array(FailedAttemptSchema),
    }),
  ),
})
export type MessageAnswer = Static<typeof MessageAnswerSchema>
