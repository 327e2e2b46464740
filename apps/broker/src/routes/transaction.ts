// Transactions: acks and pushes that are applied together or not at all.
import {
  decodeLeaseToken,
  fieldError,
  readEach,
  type TransactionAck,
  type TransactionBody,
  type TransactionPush,
  type TransactionResult,
} from '@rouse/protocol'
import type { AckItem, CommittedTransaction, NewMessage } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { refuseForeign } from '../auth/forbidden.ts'
import { withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'
import { logEnded, readResult } from './ack.ts'
import { atItem, dropItemNulls, readPushItems, toPushedAnswer } from './push.ts'
import { fenceAcks, type PlacedAck } from './required-leases.ts'

export function transactionRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/transaction',
    {
      preValidation: (request, _reply, done) => {
        dropNulls(request.body)
        done()
      },
    },
    async (request) => {
      const body = request.body as TransactionBody
      const { acks: given, pushes: read, group } = readOperations(body, context)
      const results = readEach(given, ({ ack, path }) => readResult(ack, path, context.limits))
      const { items: pushes, end } = context.spans.push(read, request.headers.traceparent)
      const fenced = await fenceAcks(given, body.requiredLeases ?? [], context.leases)
      const acks = fenced.map((item, i) => ({ ...item, result: results[i] }))
      const required = (body.requiredLeases ?? []).map((one) => decodeLeaseToken(one)?.partitionId)
      const partitionIds = [...required, ...acks.map(({ message }) => message?.partitionId)]
      refuseForeign(request.principal, partitionIds, context.queueOfPartition)
      const transaction = { acks, pushes, group }
      const result = await context.sidecar
        .submit({ kind: 'TRANSACTION', transaction })
        .catch((error: unknown) => {
          throw atItem(error, (index) => pushPath(body, index))
        })
      end()
      logAcks(given, acks, result, request, context)
      return { success: true, results: toResults(body, pushes, result) }
    },
  )
}

interface Plan {
  readonly acks: PlacedAck[]
  readonly pushes: NewMessage[]
  readonly group: string | undefined
}

function readOperations(body: TransactionBody, context: BrokerContext): Plan {
  const { operationsMax } = context.config
  if (body.operations.length > operationsMax) {
    throw fieldError('invalid_request', 'operations', `must have at most ${operationsMax} items`)
  }
  const { requiredLeases = [] } = body
  const { acknowledgmentsMax } = context.limits
  if (requiredLeases.length > acknowledgmentsMax) {
    throw fieldError(
      'invalid_request',
      'requiredLeases',
      `must have at most ${acknowledgmentsMax} items`,
    )
  }
  const read = (operation: Operation, i: number) =>
    operation.type === 'push'
      ? readPushItems(operation.items, context, `operations[${i}].items`)
      : checkFence(operation, requiredLeases, i)
  const pushes = readEach(body.operations, read).flat()
  const acks = body.operations.flatMap((operation, i) =>
    operation.type === 'ack' ? [{ ack: operation, path: `operations[${i}]` }] : [],
  )
  const groups = new Set(acks.map(({ ack }) => ack.consumerGroup))
  const { pushItemsMax } = context.limits
  if (pushes.length > pushItemsMax) {
    throw fieldError('invalid_request', 'operations', `must push at most ${pushItemsMax} items`)
  }
  // With acks of several groups, SQL checks only their leases and not the group.
  return { acks, pushes, group: groups.size === 1 ? [...groups][0] : undefined }
}

type Operation = TransactionAck | TransactionPush

/** Returns no items, because an ack pushes nothing. */
function checkFence(ack: TransactionAck, requiredLeases: readonly string[], i: number): [] {
  const isFenced = 'receipt' in ack || ack.leaseId !== undefined
  if (isFenced || requiredLeases.length > 0) return []
  throw fieldError('invalid_request', `operations[${i}].leaseId`, 'is missing')
}

/** Where the pushed item with this number is in the body. */
function pushPath({ operations }: TransactionBody, index: number): string {
  let before = 0
  for (const [i, operation] of operations.entries()) {
    if (operation.type !== 'push') continue
    if (index < before + operation.items.length) return `operations[${i}].items[${index - before}]`
    before += operation.items.length
  }
  return 'operations'
}

/** `given` and `acks` have the same order. */
function logAcks(
  given: readonly PlacedAck[],
  acks: readonly AckItem[],
  { deadLettered }: CommittedTransaction,
  request: FastifyRequest,
  context: BrokerContext,
): void {
  const dead = new Set(deadLettered)
  for (const [i, item] of acks.entries()) {
    const outcome = { accepted: true, deadLettered: dead.has(i) }
    logEnded(context, request, given[i]?.ack.transactionId, item, outcome)
  }
}

function toResults(
  body: TransactionBody,
  pushes: readonly NewMessage[],
  { pushed, deadLettered }: CommittedTransaction,
): TransactionResult[] {
  const dead = new Set(deadLettered)
  const answers = toPushedAnswer(pushes, pushed)
  let ackAt = 0
  let pushAt = 0
  return body.operations.map((operation, index) => {
    if (operation.type === 'push') {
      const items = answers.slice(pushAt, pushAt + operation.items.length)
      pushAt += operation.items.length
      return {
        type: 'push',
        index,
        success: true,
        items: items.map((item, i) => ({ ...item, index: i })),
      }
    }
    const dlq = dead.has(ackAt) ? { dlq: true } : {}
    ackAt += 1
    const { transactionId } = operation
    const named = transactionId === undefined ? {} : { transactionId }
    return { type: 'ack', index, ...named, success: true, ...dlq }
  })
}

function dropNulls(body: unknown): void {
  const operations = (withoutNulls(body) as { operations?: unknown } | undefined)?.operations
  if (!Array.isArray(operations)) return
  for (const operation of operations) {
    const items = (withoutNulls(operation, 'result') as { items?: unknown } | undefined | null)
      ?.items
    if (Array.isArray(items)) for (const item of items) dropItemNulls(item)
  }
}
