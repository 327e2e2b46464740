import { type Static, Type } from 'typebox'
import { limits } from '../limits.ts'
import { Name, Nullable, Time } from './name.ts'

/** As documented; the wire has text, so the numbers go through `parseDecimal`. */
export const DeadLettersQuerySchema = Type.Object({
  queue: Type.Optional(Name()),
  consumerGroup: Type.Optional(Name()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.pageSizeMax })),
  offset: Type.Optional(Type.Integer({ minimum: 0 })),
})
export type DeadLettersQuery = Static<typeof DeadLettersQuerySchema>

export const DeadLetterSchema = Type.Object({
  id: Type.String(),
  transactionId: Type.String(),
  partitionId: Type.String(),
  partition: Nullable(Type.String()),
  queue: Type.String(),
  consumerGroup: Type.String(),
  data: Type.Unknown(),
  errorMessage: Nullable(Type.String()),
  errorCode: Nullable(Type.String()),
  attempts: Type.Integer(),
  createdAt: Time,
  failedAt: Time,
})
export type DeadLetter = Static<typeof DeadLetterSchema>

export const DeadLettersAnswerSchema = Type.Object({
  messages: Type.Array(DeadLetterSchema),
  total: Type.Integer(),
})
export type DeadLettersAnswer = Static<typeof DeadLettersAnswerSchema>

export const RedriveBodySchema = Type.Object({
  queue: Name(),
  where: Type.Optional(
    Type.Object({
      consumerGroup: Type.Optional(Name()),
      errorCode: Type.Optional(Type.String()),
      ids: Type.Optional(Type.Array(Type.String(), { maxItems: limits.pageSizeMax })),
    }),
  ),
  rate: Type.Optional(Type.Integer({ minimum: 1, description: 'Messages a second' })),
  dryRun: Type.Optional(Type.Boolean({ default: false })),
})
export type RedriveBody = Static<typeof RedriveBodySchema>
