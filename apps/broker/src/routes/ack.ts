import { type AckBody, AckBodySchema, parseConsumerGroup, RouseError } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { leaseLostText, logEnded, readAck, toAckResult } from '../ack-items.ts'
import type { BrokerContext } from '../broker-context.ts'
import { withoutNulls } from '../json-body.ts'
import { bodySchema } from '../request-schema.ts'

export function ackRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/ack',
    {
      schema: { body: bodySchema(AckBodySchema) },
      preValidation: (request, _reply, done) => {
        withoutNulls(request.body)
        done()
      },
    },
    async (request) => {
      const ack = request.body as AckBody
      const group =
        ack.consumerGroup === undefined ? undefined : parseConsumerGroup(ack.consumerGroup)
      const item = readAck(ack)
      if (item === undefined) throw new RouseError('lease_lost', leaseLostText)
      const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
      if (!outcome.accepted) throw new RouseError('lease_lost', leaseLostText)
      logEnded(context, ack.transactionId, item, outcome)
      return [toAckResult(0, ack.transactionId, outcome)]
    },
  )
}
