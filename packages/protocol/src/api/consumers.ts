// The routes that producers and consumers use.
import { AckBodySchema, AckLeaseBodySchema, AckListBodySchema } from '../schemas/ack.ts'
import { ifGiven } from '../schemas/conditions.ts'
import { ExtendBodySchema } from '../schemas/lease.ts'
import { PopBodySchema, PopQuerySchema } from '../schemas/pop.ts'
import { PushBodySchema } from '../schemas/push.ts'
import { TransactionAckSchema, TransactionPushSchema } from '../schemas/transaction.ts'
import { type Endpoint, needs, type RequestSchema } from './endpoint.ts'

const popPaths = [
  ['/api/v1/pop/queue/:queue', 'any partition of a queue', 'path'],
  ['/api/v1/pop/queue/:queue/partition/:partition', 'one partition', 'path'],
  ['/api/v1/pop', 'the queues of a namespace or task', 'every'],
] as const

/** `readPopBody` checks the values of the other fields, with the limits of the node. */
const popBody: RequestSchema = {
  type: 'object',
  properties: {
    ...Object.fromEntries(Object.keys(PopQuerySchema.properties).map((name) => [name, {}])),
    acks: PopBodySchema.properties.acks,
  },
}

/** The type of an operation selects its schema, so that errors name the right fields. */
const transactionBody: RequestSchema = {
  type: 'object',
  required: ['operations'],
  properties: {
    requiredLeases: { type: 'array', items: { type: 'string' } },
    operations: {
      type: 'array',
      items: {
        type: 'object',
        required: ['type'],
        properties: { type: { enum: ['ack', 'push'] } },
        additionalProperties: true,
        if: { properties: { type: { const: 'ack' } } },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: TransactionAckSchema,
        else: TransactionPushSchema,
      },
    },
  },
}

export const consumerEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/api/v1/push',
    summary: 'Stores messages: all of the request, or none',
    needs: needs('push', 'items'),
    body: PushBodySchema,
  },
  ...popPaths.flatMap(([path, place, target]): Endpoint[] => [
    {
      method: 'GET',
      path,
      summary: `Leases messages of ${place}`,
      needs: needs('pop', target),
      query: PopQuerySchema,
    },
    {
      method: 'POST',
      path,
      summary: `Acknowledges messages, and leases others of ${place}`,
      needs: needs('pop', target),
      body: popBody,
      shownBody: PopBodySchema,
    },
  ]),
  {
    method: 'POST',
    path: '/api/v1/ack',
    summary: 'Ends one delivered message',
    needs: needs('pop', 'any'),
    body: AckBodySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/ack/batch',
    summary: 'Ends several delivered messages, or all of a lease',
    needs: needs('pop', 'any'),
    body: ifGiven('acknowledgments', AckListBodySchema, AckLeaseBodySchema),
  },
  {
    method: 'POST',
    path: '/api/v1/transaction',
    summary: 'Ends and stores messages together, or does nothing',
    needs: [
      { verb: 'push', target: 'operations' },
      { verb: 'pop', target: 'operations' },
    ],
    body: transactionBody,
  },
  {
    method: 'POST',
    path: '/api/v1/lease/:leaseId/extend',
    summary: 'Extends a lease',
    needs: needs('pop', 'any'),
    body: ExtendBodySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/lease/:leaseId',
    summary: 'Gives leased messages back',
    needs: needs('pop', 'any'),
  },
]
