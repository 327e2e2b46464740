import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { excluded, ifGiven } from './conditions.ts'
import { Name } from './name.ts'

/** `success` is the word of existing clients for `completed`. */
export const ackStatuses = ['completed', 'failed', 'retry', 'dlq', 'success'] as const

const outcome = {
  status: Type.Optional(Type.Enum(ackStatuses, { default: 'completed' })),
  error: Type.Optional(Type.String({ maxLength: limits.errorTextBytesMax })),
  errorCode: Type.Optional(Type.String({ maxLength: limits.errorCodeBytesMax })),
  delayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.delayMsMax })),
}

const result = {
  result: Type.Optional(
    Type.Unknown({
      description: `What the consumer returns for a completed message: any JSON, at most ${limits.resultBytesMax} bytes`,
    }),
  ),
}

const notWithReceipt = 'must not be given with receipt, which names the message alone'

/** Names the message by its receipt alone. */
export const AckByReceiptSchema = Type.Object({
  receipt: Type.String({ description: 'The receipt of the delivered message' }),
  transactionId: excluded(notWithReceipt),
  partitionId: excluded(notWithReceipt),
  leaseId: excluded(notWithReceipt),
  ...outcome,
  ...result,
})
export type AckByReceipt = Static<typeof AckByReceiptSchema>

/**
 * Names the message by its transactionId, inside the lease of its pop. A lease id in a wrong format is not an
 * invalid request: it counts as a lease that no consumer holds.
 */
export const AckByIdsSchema = Type.Object({
  transactionId: Type.String(),
  partitionId: Type.String(),
  leaseId: Type.String(),
  ...outcome,
  ...result,
})
export type AckByIds = Static<typeof AckByIdsSchema>

export type Ack = AckByReceipt | AckByIds
export const AckSchema = Type.Unsafe<Ack>(ifGiven('receipt', AckByReceiptSchema, AckByIdsSchema))

const group = { consumerGroup: Type.Optional(Name()) }

export type AckBody = Ack & { readonly consumerGroup?: string }
export const AckBodySchema = Type.Unsafe<AckBody>(
  ifGiven(
    'receipt',
    Type.Object({ ...AckByReceiptSchema.properties, ...group }),
    Type.Object({ ...AckByIdsSchema.properties, ...group }),
  ),
)

export const AckListBodySchema = Type.Object({
  ...group,
  acknowledgments: Type.Array(AckSchema, { maxItems: limits.acknowledgmentsMax }),
})
export type AckListBody = Static<typeof AckListBodySchema>

export const AckLeaseBodySchema = Type.Object({
  ...group,
  leaseId: Type.String({ description: 'Ends everything that the lease still holds' }),
  receipt: excluded('names one message: send it to /api/v1/ack, or in acknowledgments'),
  ...outcome,
  result: excluded('is for one message: send it to /api/v1/ack, or in acknowledgments'),
})
export type AckLeaseBody = Static<typeof AckLeaseBodySchema>

/** `/ack/batch`: a list of messages, or all remaining messages of a lease. */
export const AckBatchBodySchema = Type.Union([AckListBodySchema, AckLeaseBodySchema])
export type AckBatchBody = Static<typeof AckBatchBodySchema>

export const AckResultSchema = Type.Object({
  index: Type.Integer(),
  transactionId: Type.Optional(
    Type.String({ description: 'Absent for a receipt and for a whole lease' }),
  ),
  success: Type.Boolean(),
  error: Type.Optional(Type.String()),
  dlq: Type.Optional(Type.Boolean()),
})
export type AckResult = Static<typeof AckResultSchema>

export const AckAnswerSchema = Type.Array(AckResultSchema)
export type AckAnswer = Static<typeof AckAnswerSchema>
