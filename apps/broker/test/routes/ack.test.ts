import { test } from 'tap'
import { type Ackable, ackOf, apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

async function popped(count = 1, options: object = {}) {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [0], ...options } })
  await api.push(
    ...Array.from({ length: count }, (_, n) => ({ queue, partition: 'p', payload: n })),
  )
  const { body } = await api.pop(queue, `?batch=${count}`)
  return {
    queue,
    messages: body.messages as (Ackable & { receipt: string })[],
  }
}

test('an ack with status completed ends the message, and a second ack is refused with lease_lost', async (t) => {
  const { queue, messages } = await popped()
  t.match(await api.ack(messages[0] as never), {
    status: 200,
    body: [{ index: 0, transactionId: messages[0]?.transactionId, success: true }],
  })
  t.match(await api.ack(messages[0] as never), {
    status: 409,
    body: { code: 'lease_lost', retryable: false },
  })
  t.equal((await api.pop(queue)).status, 204)
})

test('an ack by receipt ends that message and no other of the pop', async (t) => {
  const { queue, messages } = await popped(3)
  const receipts = messages.map(({ receipt }) => receipt)
  const ack = (body: object) => api.post('/ack', body)
  const { status, body } = await ack({ receipt: receipts[1] })
  t.same({ status, body }, { status: 200, body: [{ index: 0, success: true }] })
  t.match(await ack({ receipt: receipts[1] }), { status: 409, body: { code: 'lease_lost' } })
  t.match(await ack({ receipt: 'foreign' }), { status: 409, body: { code: 'lease_lost' } })
  t.match(await ack({ receipt: receipts[0], consumerGroup: 'other' }), { status: 409 })
  t.match(await ack({ receipt: receipts[0], status: 'dlq', error: 'no' }), {
    body: [{ success: true, dlq: true }],
  })
  t.match(await ack({ receipt: receipts[2], status: 'done' }), { status: 400 })
  t.match(await ack({ receipt: receipts[2], status: 'retry' }), { status: 200 })
  t.match((await api.pop(queue, '?batch=3')).body.messages, [{ data: 2, attempt: 1 }])
})

test('an ack whose transactionId, partitionId and leaseId do not match is refused', async (t) => {
  const { messages } = await popped(2)
  const [one, two] = messages.map(ackOf) as [ReturnType<typeof ackOf>, ReturnType<typeof ackOf>]
  for (const wrong of [
    { ...one, leaseId: messages[1]?.receipt as string },
    { ...one, leaseId: messages[0]?.receipt as string, transactionId: two.transactionId },
    { ...one, transactionId: 'other' },
    { ...one, transactionId: `${one.partitionId}-99` },
    { ...one, transactionId: `${one.partitionId}-01` },
    { ...one, transactionId: 'nul \u0000' },
    { ...one, partitionId: '999' },
    { ...one, partitionId: 'not a number' },
    { ...one, leaseId: 'foreign' },
    { ...one, leaseId: '' },
    { ...one, leaseId: '7f3c1c1e-0000-4000-8000-000000000000' },
    { ...one, leaseId: 'A'.repeat(48) },
  ]) {
    t.match(
      await api.ack(wrong),
      { status: 409, body: { code: 'lease_lost' } },
      JSON.stringify(wrong),
    )
  }
  t.equal((await api.ack(one)).status, 200, 'the refused acks changed nothing')
})

test('an ack with another consumer group is refused', async (t) => {
  const { messages } = await popped()
  const wrong = await api.ack(messages[0] as never, 'completed', { consumerGroup: 'other' })
  t.equal(wrong.status, 409)
  const right = await api.ack(messages[0] as never, 'completed', {
    consumerGroup: '__QUEUE_MODE__',
  })
  t.equal(right.status, 200)
})

test('an ack with status failed redelivers with the next attempt, and dead-letters at the retry limit', async (t) => {
  const { queue, messages } = await popped(1, { retryLimit: 1 })
  const more = { error: 'boom \u0000 \ud800', errorCode: 'E' }
  t.match(await api.ack(messages[0] as never, 'failed', more), { body: [{ success: true }] })
  const again = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(again.body.messages, [{ attempt: 2, data: 0 }])
  t.match(await api.ack(again.body.messages[0], 'failed'), {
    status: 200,
    body: [{ success: true, dlq: true }],
  })
  t.match((await api.get(`/resources/queues/${queue}`)).body.groups, [{ dead: 1 }])
})

test('an ack with status retry redelivers after delayMs without charging the attempt', async (t) => {
  const { queue, messages } = await popped()
  await api.ack(messages[0] as never, 'retry', { delayMs: 200 })
  t.equal((await api.pop(queue)).status, 204)
  const again = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(again.body.messages, [{ attempt: 1 }])
})

test('an ack with status dlq dead-letters at once', async (t) => {
  const { messages } = await popped()
  t.match(await api.ack(messages[0] as never, 'dlq'), { body: [{ success: true, dlq: true }] })
})

test('an invalid ack is refused with 400', async (t) => {
  const ack = { transactionId: 't', partitionId: '1', leaseId: 'x' }
  for (const body of [
    {},
    [],
    null,
    { ...ack, status: 'done' },
    { ...ack, transactionId: 5 },
    { ...ack, partitionId: 1 },
    { ...ack, delayMs: '1' },
    { ...ack, error: {} },
    { ...ack, consumerGroup: '' },
  ]) {
    t.equal((await api.post('/ack', body)).status, 400, JSON.stringify(body))
  }
  t.equal((await api.post('/ack', { ...ack, error: null, consumerGroup: null })).status, 409)
})

test('a batch of acks returns one result per ack, in order', async (t) => {
  const { queue, messages } = await popped(3)
  const [one, two, three] = messages.map(ackOf)
  const answer = await api.post('/ack/batch', {
    consumerGroup: '__QUEUE_MODE__',
    acknowledgments: [
      { ...one, status: 'completed' },
      { ...two, leaseId: 'foreign', status: 'completed' },
      { ...three, status: 'retry' },
    ],
  })
  t.match(answer, {
    status: 200,
    body: [
      { index: 0, transactionId: one?.transactionId, success: true },
      { index: 1, transactionId: two?.transactionId, success: false, error: /lease/ },
      { index: 2, success: true },
    ],
  })
  t.equal((await api.pop(queue)).status, 204, 'the second message is still leased')
  t.match(await api.post('/ack/batch', { acknowledgments: [{ ...two }] }), {
    body: [{ success: true }],
  })
  t.match((await api.pop(queue, '?wait=true&timeout=5000')).body.messages, [{ data: 2 }])
})

test('the leaseId of a pop, or any receipt, acknowledges the whole lease', async (t) => {
  const { queue, messages } = await popped(5)
  const answer = await api.post('/ack/batch', {
    leaseId: messages[3]?.receipt,
    status: 'completed',
  })
  t.match(answer, { status: 200, body: [{ success: true }] })
  t.match((await api.get(`/resources/queues/${queue}`)).body.groups, [{ pending: 0, inFlight: 0 }])
  t.equal((await api.post('/ack/batch', { leaseId: messages[3]?.leaseId })).status, 409)
  t.equal((await api.post('/ack/batch', { leaseId: 'foreign' })).status, 409)
})

test('acknowledging a whole lease returns one result without a transactionId', async (t) => {
  const { queue, messages } = await popped(3)
  const [one, two] = messages.map(ackOf)
  await api.ack(one as never)
  const whole = (status: string) => api.post('/ack/batch', { leaseId: two?.leaseId, status })
  const ended = await whole('dlq')
  t.equal(ended.status, 200)
  t.same(ended.body, [{ index: 0, success: true, dlq: true }])
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 2, 'only the messages it still held')
  const again = await whole('completed')
  t.match(again, { status: 409, body: { code: 'lease_lost' } }, 'not a result with success: false')
  const retried = await popped(2)
  const leaseId = retried.messages[0]?.leaseId
  const { body } = await api.post('/ack/batch', { leaseId, status: 'retry' })
  t.same(body, [{ index: 0, success: true }])
})

test('an empty batch succeeds, and an invalid one is refused', async (t) => {
  t.match(await api.post('/ack/batch', { acknowledgments: [] }), { status: 200, body: [] })
  for (const body of [
    {},
    { acknowledgments: 1 },
    { acknowledgments: [1] },
    { acknowledgments: [{}] },
  ]) {
    t.equal((await api.post('/ack/batch', body)).status, 400, JSON.stringify(body))
  }
})

test('after a partial ack the remaining messages are delivered next, in order', async (t) => {
  const { queue, messages } = await popped(3)
  await api.push({ queue, payload: 'new' })
  await api.ack(messages[1] as never)
  await api.del(`/lease/${messages[0]?.leaseId}`)
  const seen: unknown[] = []
  for (;;) {
    const { status, body } = await api.pop(queue, '?batch=10&autoAck=true')
    if (status !== 200) break
    seen.push(...body.messages.map((message: { data: unknown }) => message.data))
  }
  t.same(seen, [0, 2, 'new'])
})

test('the leaseId of a pop, or any receipt, extends and releases the lease', async (t) => {
  const { queue, messages } = await popped(2)
  const leaseId = messages[1]?.leaseId as string
  const extended = await api.post(`/lease/${leaseId}/extend`, { seconds: 3_000 })
  t.match(extended, { status: 200, body: { leaseId, success: true, expiresAt: /Z$/ } })
  t.ok(Date.parse(extended.body.expiresAt) > Date.now() + 2_900_000)
  t.equal((await api.post(`/lease/${leaseId}/extend`)).status, 200, 'the body is optional')
  const receipt = messages[0]?.receipt
  t.match(await api.post(`/lease/${receipt}/extend`), { status: 200, body: { leaseId: receipt } })
  t.match(await api.del(`/lease/${leaseId}`), { status: 200, body: { success: true } })
  const again = await api.pop(queue, '?batch=5')
  t.match(again.body.messages, [{ data: 0, attempt: 1 }, { data: 1 }])
  t.equal((await api.post(`/lease/${leaseId}/extend`, {})).status, 409)
  t.equal((await api.del(`/lease/${leaseId}`)).status, 409)
  t.equal((await api.del('/lease/foreign')).status, 409)
  for (const seconds of [0, -1, 1.5, '5', 86_401]) {
    t.equal((await api.post(`/lease/${leaseId}/extend`, { seconds })).status, 400, `${seconds}`)
  }
})

test('messages of an expired lease are redelivered at once', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const first = await api.pop(queue, '?leaseSeconds=1')
  const began = performance.now()
  const again = await api.pop(queue, '?wait=true&timeout=10000')
  t.ok(performance.now() - began < 1_500)
  t.match(again.body.messages, [{ attempt: 2 }])
  t.equal((await api.ack(first.body.messages[0])).status, 409)
})
