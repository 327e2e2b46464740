import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { AckByIdsSchema, AckByReceiptSchema, AckResultSchema } from './ack.ts'
import { ifGiven } from './conditions.ts'
import { Name } from './name.ts'
import { PushBodySchema, PushedItemSchema } from './push.ts'

const { leaseId, ...ackFields } = AckByIdsSchema.properties
const operation = { type: Type.Literal('ack'), consumerGroup: Type.Optional(Name()) }

const TransactionAckByReceiptSchema = Type.Object({
  ...operation,
  ...AckByReceiptSchema.properties,
})
const TransactionAckByIdsSchema = Type.Object({
  ...operation,
  ...ackFields,
  leaseId: Type.Optional(leaseId),
})
export type TransactionAckByIds = Static<typeof TransactionAckByIdsSchema>
export type TransactionAck = Static<typeof TransactionAckByReceiptSchema> | TransactionAckByIds
export const TransactionAckSchema = Type.Unsafe<TransactionAck>(
  ifGiven('receipt', TransactionAckByReceiptSchema, TransactionAckByIdsSchema),
)

export const TransactionPushSchema = Type.Object({
  type: Type.Literal('push'),
  ...PushBodySchema.properties,
})
export type TransactionPush = Static<typeof TransactionPushSchema>

/** Each ack needs a receipt, a leaseId, or one of requiredLeases. Without any, the ack is refused. */
export const TransactionBodySchema = Type.Object({
  operations: Type.Array(Type.Union([TransactionAckSchema, TransactionPushSchema]), {
    maxItems: limits.transactionOperationsMax,
  }),
  requiredLeases: Type.Optional(Type.Array(Type.String(), { maxItems: limits.acknowledgmentsMax })),
})
export type TransactionBody = Static<typeof TransactionBodySchema>

export const TransactionResultSchema = Type.Union([
  Type.Object({ type: Type.Literal('ack'), ...AckResultSchema.properties }),
  Type.Object({
    type: Type.Literal('push'),
    index: Type.Integer(),
    success: Type.Boolean(),
    items: Type.Array(PushedItemSchema),
  }),
])
export type TransactionResult = Static<typeof TransactionResultSchema>

/** The response to a failed transaction is a problem with `success: false` added. */
export const TransactionAnswerSchema = Type.Object({
  success: Type.Literal(true),
  results: Type.Array(TransactionResultSchema),
})
export type TransactionAnswer = Static<typeof TransactionAnswerSchema>
