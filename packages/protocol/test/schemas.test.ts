import { test } from 'tap'
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import * as protocol from '../src/index.ts'

const {
  AckBatchBodySchema,
  AckBodySchema,
  ConfigureBodySchema,
  PopBodySchema,
  ProblemSchema,
  PushBodySchema,
  TransactionBodySchema,
} = protocol

const ack = { transactionId: 't', partitionId: '1', leaseId: 'l', status: 'completed' }

test('a payload may be any JSON value but must be present', async (t) => {
  for (const payload of [null, false, 0, '', '\u0000', [], { ['__proto__']: 1 }]) {
    t.ok(Value.Check(PushBodySchema, { items: [{ queue: 'q', payload }] }))
  }
  t.notOk(Value.Check(PushBodySchema, { items: [{ queue: 'q' }] }))
  t.ok(Value.Check(PushBodySchema, { items: [] }))
})

test('a push of more than 10,000 items is refused', async (t) => {
  const items = Array.from({ length: 10_000 }, () => ({ queue: 'q', payload: 1 }))
  t.ok(Value.Check(PushBodySchema, { items }))
  t.notOk(Value.Check(PushBodySchema, { items: [...items, items[0]] }))
})

test('a schema itself takes unknown fields: the server refuses them in requests', async (t) => {
  t.ok(Value.Check(PushBodySchema, { items: [{ queue: 'q', payload: 1, extra: 2 }], more: 3 }))
  t.ok(Value.Check(AckBodySchema, { ...ack, extra: 1 }))
  t.ok(Value.Check(PopBodySchema, { batch: 5, acks: [ack], extra: 1 }))
  t.ok(Value.Check(ConfigureBodySchema, { queue: 'q', options: { noSuchOption: 1 } }))
})

test('bodies are not coerced', async (t) => {
  t.notOk(Value.Check(PopBodySchema, { batch: '5' }))
  t.notOk(Value.Check(PopBodySchema, { wait: 'true' }))
  t.notOk(Value.Check(PushBodySchema, { items: [{ queue: 5, payload: 1 }] }))
  t.notOk(Value.Check(AckBodySchema, { ...ack, status: 'done' }))
})

test('a batch of acks is a list or a whole lease', async (t) => {
  t.ok(Value.Check(AckBatchBodySchema, { acknowledgments: [ack] }))
  t.ok(Value.Check(AckBatchBodySchema, { leaseId: 'l', status: 'failed' }))
  t.notOk(Value.Check(AckBatchBodySchema, { status: 'failed' }))
})

test('a transaction mixes acks and pushes', async (t) => {
  const { leaseId: _, ...unfenced } = ack
  const operations = [
    { type: 'ack', ...ack },
    { type: 'ack', ...unfenced },
    { type: 'push', items: [{ queue: 'q', payload: null }] },
  ]
  t.ok(Value.Check(TransactionBodySchema, { operations, requiredLeases: ['l'] }))
  t.notOk(Value.Check(TransactionBodySchema, { operations: [{ type: 'drop' }] }))
})

test('a problem has the documented shape', async (t) => {
  const problem = protocol.toProblem(new protocol.RouseError('lease_lost'), {
    requestId: 'r',
    node: 'a',
  })
  t.ok(Value.Check(ProblemSchema, problem))
})

test('every schema is plain JSON Schema', async (t) => {
  const schemas = Object.entries(protocol).filter(([name]) => name.endsWith('Schema'))
  t.ok(schemas.length > 20)
  for (const [name, schema] of schemas) {
    const json = JSON.stringify(schema as TSchema)
    t.match(json, /"(type|anyOf)":/, name)
    t.notMatch(json, /additionalProperties":false/, name)
  }
})

test('the limits are frozen', async (t) => {
  t.ok(Object.isFrozen(protocol.limits))
  t.match(protocol.limits, { bodyBytesMax: 4_194_304, nameBytesMax: 255, batchMax: 1_000 })
})
