import {
  type AckBody,
  AckBodySchema,
  type AckReceiptBody,
  AckReceiptBodySchema,
  parseConsumerGroup,
  RouseError,
} from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { leaseLostText, logEnded, readAck, readReceipt, toAckResult } from './ack-items.ts'

/** Selects the schema by the receipt, so that errors refer to the intended form. */
const ackSchema = {
  if: { type: 'object', required: ['receipt'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: bodySchema(AckReceiptBodySchema),
  else: bodySchema(AckBodySchema),
}

export function ackRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/ack',
    {
      schema: { body: ackSchema },
      preValidation: (request, _reply, done) => {
        withoutNulls(request.body)
        done()
      },
    },
    async (request) => {
      const ack = request.body as AckBody | AckReceiptBody
      const group =
        ack.consumerGroup === undefined ? undefined : parseConsumerGroup(ack.consumerGroup)
      const item = 'receipt' in ack ? readReceipt(ack) : readAck(ack)
      if (item === undefined) throw new RouseError('lease_lost', leaseLostText)
      const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
      if (!outcome.accepted) throw new RouseError('lease_lost', leaseLostText)
      if ('receipt' in ack) {
        logEnded(context, undefined, item, outcome)
        return [{ index: 0, success: true, ...(outcome.deadLettered ? { dlq: true } : {}) }]
      }
      logEnded(context, ack.transactionId, item, outcome)
      return [toAckResult(0, ack.transactionId, outcome)]
    },
  )
}
