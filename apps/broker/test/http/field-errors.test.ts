// The response to an invalid request lists every invalid field with its path.
import { fieldErrorsMax } from '@rouse/protocol'
import { test } from 'tap'
import { type Answer, apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

function fieldsOf({ status, body }: Answer): unknown[] {
  return [status, ...(body.errors ?? []).map((error: { field: string }) => error.field)]
}

test('an invalid push lists every invalid field of every item', async (t) => {
  const queue = unique()
  const shapes = await api.push(
    { queue, payload: 1 },
    { queue: 5, payload: 1, headers: [] },
    { partition: 'p', delayMs: -1 },
    'x',
  )
  t.same(fieldsOf(shapes), [
    400,
    'items[1].queue',
    'items[1].headers',
    'items[2].queue',
    'items[2].payload',
    'items[2].delayMs',
    'items[3]',
  ])
  t.match(shapes.body, {
    code: 'invalid_request',
    detail: 'items[1].queue must be string',
    errors: [{ message: 'must be string' }, {}, { message: 'is missing' }],
  })
  const values = await api.push(
    { queue: '..', payload: 1, partition: '\u0001' },
    { queue, payload: 1, runAt: 'soon' },
    { queue, payload: 1, delayMs: 1, runAt: '2030-01-01T00:00:00Z', traceId: '.' },
  )
  t.same(fieldsOf(values), [
    400,
    'items[0].queue',
    'items[0].partition',
    'items[1].runAt',
    'items[2].traceId',
    'items[2].runAt',
  ])
  t.equal(values.body.code, 'invalid_name')
  t.equal((await api.pop(queue)).status, 204)
})

test('the number of listed fields is limited', async (t) => {
  const { body } = await api.push(...Array.from({ length: 900 }, () => ({ queue: 1, payload: 1 })))
  t.equal(body.errors.length, fieldErrorsMax)
  t.match(body.errors.at(-1), { field: `items[${fieldErrorsMax - 1}].queue` })
  const names = await api.push(...Array.from({ length: 900 }, () => ({ queue: '.', payload: 1 })))
  t.equal(names.body.errors.length, fieldErrorsMax)
})

test('an invalid field after many valid items is listed', async (t) => {
  const good = Array.from({ length: 999 }, () => ({ queue: 'q', payload: 1 }))
  t.same(fieldsOf(await api.push(...good, { queue: 'q' })), [400, 'items[999].payload'])
  const far = Array.from({ length: 30_000 }, () => ({ queue: 'q', payload: 1 }))
  t.same(fieldsOf(await api.push(...far, { queue: 'q' })), [400, 'items[30000].payload'])
})

test('an invalid transaction lists fields by the type of each operation', async (t) => {
  const shapes = await api.post('/transaction', {
    operations: [
      { type: 'ack', transactionId: 1 },
      { type: 'push', items: [{ queue: 'q' }, {}] },
      { type: 'pop' },
      { type: 'push' },
      null,
    ],
    requiredLeases: [5],
  })
  t.same(fieldsOf(shapes), [
    400,
    'requiredLeases[0]',
    'operations[0].partitionId',
    'operations[0].transactionId',
    'operations[1].items[0].payload',
    'operations[1].items[1].queue',
    'operations[1].items[1].payload',
    'operations[2].type',
    'operations[3].items',
    'operations[4]',
  ])
  const values = await api.post('/transaction', {
    operations: [
      { type: 'ack', transactionId: 't', partitionId: '1' },
      { type: 'push', items: [{ queue: '.', payload: 1, transactionId: '..' }] },
      { type: 'ack', transactionId: 't', partitionId: '1' },
    ],
  })
  t.same(fieldsOf(values), [
    400,
    'operations[0].leaseId',
    'operations[1].items[0].queue',
    'operations[1].items[0].transactionId',
    'operations[2].leaseId',
  ])
})

test('an invalid batch of acks lists every invalid field', async (t) => {
  const ack = { transactionId: 't', partitionId: '1', leaseId: 'x' }
  const acknowledgments = [ack, { ...ack, status: 'done', delayMs: '1' }, {}]
  t.same(fieldsOf(await api.post('/ack/batch', { acknowledgments, consumerGroup: 1 })), [
    400,
    'consumerGroup',
    'acknowledgments[1].status',
    'acknowledgments[1].delayMs',
    'acknowledgments[2].transactionId',
    'acknowledgments[2].partitionId',
    'acknowledgments[2].leaseId',
  ])
})

test('an invalid query lists every invalid parameter', async (t) => {
  t.same(fieldsOf(await api.pop('q', '?batch=0&wait=maybe&task=..')), [
    400,
    'batch',
    'wait',
    'task',
  ])
  t.same(fieldsOf(await api.get('/dlq?queue=..&consumerGroup=.&limit=x&offset=-1')), [
    400,
    'queue',
    'consumerGroup',
    'limit',
    'offset',
  ])
  t.same(fieldsOf(await api.get('/dlq/groups?queue=..&limit=0')), [400, 'queue', 'limit'])
  t.same(fieldsOf(await api.get('/messages?status=x&limit=0&follow=x')), [
    400,
    'queue',
    'status',
    'limit',
    'follow',
  ])
  t.same(fieldsOf(await api.get('/traces/by-name/n?limit=0&cursor=x')), [400, 'limit', 'cursor'])
  t.same(fieldsOf(await send('GET', `${url}/stats?scope=all`)), [400, 'scope'])
})

test('invalid administrative requests list every invalid field', async (t) => {
  const configure = { queue: '.', namespace: '..', task: '\u0001' }
  t.same(fieldsOf(await api.post('/configure', configure)), [400, 'queue', 'namespace', 'task'])
  const schedule = { name: '.', queue: '..', cron: 'x', timeZone: 'Nowhere' }
  t.same(fieldsOf(await api.post('/schedules', schedule)), [
    400,
    'name',
    'queue',
    'cron',
    'timeZone',
  ])
  const where = { partition: '.', ids: ['x', 'y'] }
  t.same(fieldsOf(await api.post('/dlq/redrive', { queue: '.', where })), [
    400,
    'queue',
    'where.partition',
    'where.ids[0]',
    'where.ids[1]',
  ])
  const trace = { transactionId: '.', partitionId: '1', traceNames: ['.', 'a', '..'], data: 1 }
  t.same(fieldsOf(await api.post('/traces', trace)), [
    400,
    'transactionId',
    'traceNames[0]',
    'traceNames[2]',
  ])
})
