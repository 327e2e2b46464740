import {
  type AckLeaseBody,
  AckLeaseBodySchema,
  type AckListBody,
  AckListBodySchema,
  type AckResult,
  decodeLeaseToken,
  fieldError,
  parseConsumerGroup,
  RouseError,
} from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { leaseLostText, readEnding, submitAcks } from './ack-items.ts'

type AckBatchBody = AckListBody | AckLeaseBody

/** Selects the schema by the list, so that errors refer to the intended form. */
const ackBatchSchema = {
  if: { type: 'object', required: ['acknowledgments'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: bodySchema(AckListBodySchema),
  else: bodySchema(AckLeaseBodySchema),
}

export function ackBatchRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/ack/batch',
    {
      schema: { body: ackBatchSchema },
      preValidation: (request, _reply, done) => {
        dropNulls(request.body)
        done()
      },
    },
    async (request) => {
      const body = request.body as AckBatchBody
      const group =
        body.consumerGroup === undefined ? undefined : parseConsumerGroup(body.consumerGroup)
      if (!('acknowledgments' in body)) return [await ackLease(body, group, context)]
      const { acknowledgmentsMax } = context.limits
      if (body.acknowledgments.length > acknowledgmentsMax) {
        throw fieldError(
          'invalid_request',
          'acknowledgments',
          `must be at most ${acknowledgmentsMax}`,
        )
      }
      return submitAcks(body.acknowledgments, group, context)
    },
  )
}

/** Acknowledges everything the lease still holds, by the leaseId of any of its messages. */
async function ackLease(
  body: AckLeaseBody,
  group: string | undefined,
  context: BrokerContext,
): Promise<AckResult> {
  const token = decodeLeaseToken(body.leaseId)
  if (token === undefined) throw new RouseError('lease_lost', leaseLostText)
  const item = { leaseId: token.leaseId, ...readEnding(body) }
  const outcome = await context.sidecar.submit({ kind: 'ACK', item, group })
  if (!outcome.accepted) throw new RouseError('lease_lost', leaseLostText)
  const { deadLettered } = outcome
  const status = item.status ?? 'completed'
  context.deliveryLog?.leaseEnded(token.leaseId, { status, deadLettered })
  return { index: 0, success: true, ...(deadLettered ? { dlq: true } : {}) }
}

function dropNulls(body: unknown): void {
  const list = (withoutNulls(body) as { acknowledgments?: unknown } | undefined)?.acknowledgments
  if (Array.isArray(list)) for (const ack of list) withoutNulls(ack)
}
