import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { Name } from './name.ts'

/** `success` is the word of existing clients for `completed`. */
export const ackStatuses = ['completed', 'failed', 'retry', 'dlq', 'success'] as const

const outcome = {
  status: Type.Optional(Type.Enum(ackStatuses, { default: 'completed' })),
  error: Type.Optional(Type.String({ maxLength: limits.errorTextBytesMax })),
  errorCode: Type.Optional(Type.String({ maxLength: limits.errorCodeBytesMax })),
  delayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.delayMsMax })),
}

/** A lease id in a wrong format is not an invalid request: it counts as a lease that no consumer holds. */
export const AckSchema = Type.Object({
  transactionId: Type.String(),
  partitionId: Type.String(),
  leaseId: Type.String(),
  ...outcome,
})
export type Ack = Static<typeof AckSchema>

export const AckBodySchema = Type.Object({
  ...AckSchema.properties,
  consumerGroup: Type.Optional(Name()),
})
export type AckBody = Static<typeof AckBodySchema>

/** Acknowledges one message by its token alone: the `leaseId` from its delivery. */
export const AckReceiptBodySchema = Type.Object({
  consumerGroup: Type.Optional(Name()),
  receipt: Type.String(),
  ...outcome,
})
export type AckReceiptBody = Static<typeof AckReceiptBodySchema>

export const AckListBodySchema = Type.Object({
  consumerGroup: Type.Optional(Name()),
  acknowledgments: Type.Array(AckSchema, { maxItems: limits.acknowledgmentsMax }),
})
export type AckListBody = Static<typeof AckListBodySchema>

export const AckLeaseBodySchema = Type.Object({
  consumerGroup: Type.Optional(Name()),
  leaseId: Type.String(),
  ...outcome,
})
export type AckLeaseBody = Static<typeof AckLeaseBodySchema>

/** `/ack/batch`: a list of messages, or all remaining messages of a lease. */
export const AckBatchBodySchema = Type.Union([AckListBodySchema, AckLeaseBodySchema])
export type AckBatchBody = Static<typeof AckBatchBodySchema>

export const AckResultSchema = Type.Object({
  index: Type.Integer(),
  transactionId: Type.Optional(Type.String({ description: 'Absent for an ack of a whole lease' })),
  success: Type.Boolean(),
  error: Type.Optional(Type.String()),
  dlq: Type.Optional(Type.Boolean()),
})
export type AckResult = Static<typeof AckResultSchema>

export const AckAnswerSchema = Type.Array(AckResultSchema)
export type AckAnswer = Static<typeof AckAnswerSchema>
