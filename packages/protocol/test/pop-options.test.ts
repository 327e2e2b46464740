import { test } from 'tap'
import { readPopBody, readPopQuery } from '../src/index.ts'

const defaults = {
  batch: 1,
  wait: false,
  timeoutMs: 30_000,
  consumerGroup: '__QUEUE_MODE__',
  consumer: undefined,
  autoAck: false,
  leasePerMessage: false,
  partitions: 1,
  subscription: 'all',
  leaseSeconds: undefined,
  namespace: undefined,
  task: undefined,
}

test('a pop without options gets the defaults', async (t) => {
  t.strictSame(readPopQuery({}), defaults)
  t.strictSame(readPopBody({}), defaults)
})

test('a query and a body yield the same options', async (t) => {
  const said = {
    ...defaults,
    batch: 10,
    wait: true,
    timeoutMs: 5_000,
    consumerGroup: 'g',
    consumer: 'c',
    partitions: 3,
    leaseSeconds: 60,
    namespace: 'n',
  }
  const words = { consumerGroup: 'g', consumer: 'c', namespace: 'n' }
  t.strictSame(
    readPopQuery({
      ...words,
      batch: '10',
      wait: 'true',
      timeout: '5000',
      partitions: '3',
      leaseSeconds: '60',
    }),
    said,
  )
  t.strictSame(
    readPopBody({
      ...words,
      batch: 10,
      wait: true,
      timeout: 5_000,
      partitions: 3,
      leaseSeconds: 60,
    }),
    said,
  )
})

test('a new group starts at all, new, or a time', async (t) => {
  t.equal(readPopQuery({ subscriptionMode: 'new' }).subscription, 'new')
  t.equal(readPopQuery({ subscriptionFrom: 'now' }).subscription, 'new')
  const from = { fromMs: Date.UTC(2030, 0, 1) }
  const subscriptionFrom = '2030-01-01T00:00:00Z'
  t.same(readPopQuery({ subscriptionFrom, subscriptionMode: 'new' }).subscription, from)
  t.throws(() => readPopQuery({ subscriptionFrom: 'yesterday' }), { code: 'invalid_request' })
  t.throws(() => readPopQuery({ subscriptionFrom, subscriptionMode: 'old' }), {
    code: 'invalid_request',
  })
})

test('the words of existing clients: modes, and an empty namespace or task', async (t) => {
  for (const read of [readPopQuery, readPopBody]) {
    t.equal(read({ subscriptionMode: 'new-only' }).subscription, 'new')
    t.equal(read({ subscriptionMode: 'from_beginning' }).subscription, 'all')
    t.strictSame(read({ namespace: '', task: '' }), defaults)
    t.throws(() => read({ subscriptionMode: 'toString' }), {
      message: 'subscriptionMode must be all or new',
    })
  }
})

test('a value beyond its limit or of the wrong type is refused by name', async (t) => {
  const wrong: [() => unknown, string][] = [
    [() => readPopQuery({ batch: '0' }), 'batch'],
    [() => readPopQuery({ batch: '1001' }), 'batch'],
    [() => readPopQuery({ batch: ['1', '2'] }), 'batch'],
    [() => readPopQuery({ timeout: '300001' }), 'timeout'],
    [() => readPopQuery({ partitions: '1001' }), 'partitions'],
    [() => readPopQuery({ wait: '1' }), 'wait'],
    [() => readPopQuery({ leaseSeconds: '0' }), 'leaseSeconds'],
    [() => readPopBody({ batch: '1' }), 'batch'],
    [() => readPopBody({ batch: 1.5 }), 'batch'],
    [() => readPopBody({ wait: 'true' }), 'wait'],
  ]
  for (const [read, field] of wrong) {
    t.throws(read, { code: 'invalid_request', errors: [{ field }] }, field)
  }
  t.throws(() => readPopQuery({ consumerGroup: '' }), { code: 'invalid_name' })
  t.throws(() => readPopQuery({ namespace: '..' }), { code: 'invalid_name' })
})

test('a node can set its own limits', async (t) => {
  const { limits } = await import('../src/index.ts')
  t.throws(() => readPopQuery({ batch: '11' }, { ...limits, batchMax: 10 }), {
    message: 'batch must be an integer from 1 to 10',
  })
})
