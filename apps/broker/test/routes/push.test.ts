import type { PushedMessage } from '@rouse/storage'
import { test } from 'tap'
import { pushedJson, toPushedAnswer } from '../../src/routes/push.ts'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker({ env: { ROUSE_PAYLOAD_MAX_BYTES: '2000' } })
const api = apiOf(url)

async function roundTrip(payload: string): Promise<string> {
  const queue = unique()
  const pushed = await fetch(api.at('/push'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"items":[{"queue":"${queue}","payload":${payload}}]}`,
  })
  if (pushed.status !== 201) throw new Error(`push answered ${pushed.status}`)
  const text = await (await fetch(api.at(`/pop/queue/${queue}`))).text()
  return /"data":(.*),"createdAt"/s.exec(text)?.[1] ?? ''
}

test('a repeated push is stored once, or refused if its key may have left the dedup window', async (t) => {
  const push = async (dedupWindowSeconds: number, repeatAfterMs: unknown, item: object) => {
    const queue = unique()
    await api.post('/configure', { queue, options: { dedupWindowSeconds } })
    const items = [{ queue, payload: 1, ...item }]
    t.equal((await api.post('/push', { items })).status, 201)
    const { status, body } = await api.post('/push', { items, repeatAfterMs })
    const { body: popped } = await api.pop(queue, '?batch=10')
    return { status, answer: body.code ?? body[0].status, stored: popped?.messages.length }
  }
  const keyed = { transactionId: 'k' }
  const refused = { status: 409, answer: 'repeat_too_late', stored: 1 }
  t.same(await push(3_600, 30_000, keyed), { status: 201, answer: 'duplicate', stored: 1 })
  t.same(await push(0, 0, keyed), refused)
  t.same(
    await push(30, 26_000, keyed),
    refused,
    'too late by the time that the repeated push itself may take',
  )
  t.same(await push(30, 24_000, keyed), { status: 201, answer: 'duplicate', stored: 1 })
  t.same(await push(3_600, 0, {}), refused, 'without a key it cannot be recognised')
  t.match(await push(3_600, -1, keyed), { status: 400, stored: 1 })
  t.match(await push(3_600, '5', keyed), { status: 400, stored: 1 })
})

test('a payload of any JSON value is delivered unchanged', async (t) => {
  const payloads = ['null', 'false', '""', '0', '[]', '{}', '"\\u0000"', '"\\ud800"', '"ü€😀"']
  payloads.push('{"__proto__":{"a":1},"constructor":1,"toString":null}', '[1.5,-0.25,1e21]')
  for (const payload of payloads) {
    t.equal(
      JSON.stringify(JSON.parse(await roundTrip(payload))),
      JSON.stringify(JSON.parse(payload)),
    )
  }
})

test('numbers that JavaScript cannot hold keep every digit', async (t) => {
  const payloads = ['12345678901234567890', '-9007199254740993', '1e999', '{"n":[1e-999,0.1]}']
  payloads.push('{"text":"12345678901234567890 \\" 5","n":12345678901234567891}')
  for (const payload of payloads) t.equal(await roundTrip(payload), payload)
})

test('the results are in the order of the items, across queues and partitions', async (t) => {
  const [a, b] = [unique(), unique()]
  const { status, body } = await api.push(
    { queue: a, partition: 'x', payload: 1 },
    { queue: b, payload: 2, transactionId: 'mine' },
    { queue: a, partition: 'y', payload: 3, delayMs: 60_000 },
    { queue: a, partition: 'x', payload: 4 },
  )
  t.equal(status, 201)
  t.match(body, [
    { index: 0, status: 'queued', queueName: a },
    { index: 1, status: 'queued', queueName: b, transaction_id: 'mine' },
    { index: 2, status: 'scheduled', queueName: a },
    { index: 3, status: 'queued', queueName: a },
  ])
  t.equal(body[0].partition_id, body[3].partition_id)
  t.equal(body[2].transaction_id, body[2].message_id)
})

test('a push without items succeeds', async (t) => {
  t.match(await api.push(), { status: 201, body: [] })
})

test('a second push with the same transactionId returns the first message', async (t) => {
  const queue = unique()
  const first = await api.push({ queue, payload: 1, transactionId: 'same' })
  const second = await api.push({ queue, payload: 2, transactionId: 'same' })
  t.match(second, {
    status: 201,
    body: [{ status: 'duplicate', message_id: first.body[0].message_id, transaction_id: 'same' }],
  })
})

test('a delayed message is delivered when it is due, with the transactionId that the push returned', async (t) => {
  const queue = unique()
  const { body } = await api.push({ queue, payload: 1, delayMs: 300 })
  t.equal((await api.pop(queue)).status, 204)
  const popped = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(popped.body.messages, [{ transactionId: body[0].transaction_id, id: body[0].message_id }])
})

test('createdAt of a delayed message is the time of its push, in pops, lists and dead letters', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryLimit: 0 } })
  const { body } = await api.push({ queue, payload: 1, delayMs: 300 })
  const beforeMs = Date.now()
  const popped = await api.pop(queue, '?wait=true&timeout=5000')
  const { createdAt } = (await api.get(`/messages/${body[0].id}`)).body
  t.ok(Date.parse(createdAt) <= beforeMs, 'not the time at which it fell due')
  t.equal(popped.body.messages[0].createdAt, createdAt)
  const listed = await api.get(`/messages?queue=${queue}`)
  t.match(listed.body.messages, [{ id: body[0].id, createdAt }])
  await api.ack(popped.body.messages[0], 'failed')
  const letters = await api.get(`/dead-letters?queue=${queue}`)
  t.match(letters.body.deadLetters, [{ id: body[0].id, createdAt }])
})

test('runAt needs a time zone and cannot be combined with delayMs', async (t) => {
  const queue = unique()
  const past = await api.push({ queue, payload: 1, runAt: '2020-01-01T00:00:00Z' })
  t.equal(past.status, 201)
  for (const item of [
    { runAt: 'tomorrow' },
    { runAt: '2020-01-01' },
    { runAt: '9999-01-01T00:00:00Z' },
    { runAt: '2020-01-01T00:00:00Z', delayMs: 1 },
    { delayMs: -1 },
    { delayMs: '5' },
  ]) {
    t.equal((await api.push({ queue, payload: 1, ...item })).status, 400, JSON.stringify(item))
  }
})

test('one invalid item refuses the whole request and is named by its field', async (t) => {
  const queue = unique()
  const answer = await api.push({ queue, payload: 1 }, { queue: '', payload: 2 })
  t.match(answer, {
    status: 400,
    body: { code: /invalid/, errors: [{ field: 'items[1].queue' }], error: /items\[1\]\.queue/ },
  })
  t.equal((await api.pop(queue)).status, 204)
})

test('invalid queue names and transactionIds are refused', async (t) => {
  const bad = ['', '.', '..', 'a\u0000b', 'a\nb', '\ud800', 'x'.repeat(256), 'ü'.repeat(128), 5, {}]
  for (const queue of bad) {
    t.equal((await api.push({ queue, payload: 1 })).status, 400, JSON.stringify(queue))
  }
  for (const transactionId of ['', '\ud800', 'x'.repeat(256), 7]) {
    t.equal((await api.push({ queue: 'q', payload: 1, transactionId })).status, 400)
  }
  t.equal((await api.push({ queue: 'ü'.repeat(127), payload: 1 })).status, 201)
})

test('a payload that is missing, too large or too deeply nested is refused', async (t) => {
  t.match(await api.push({ queue: 'q' }), {
    status: 400,
    body: { errors: [{ field: 'items[0].payload', message: 'is missing' }] },
  })
  t.equal((await api.push({ queue: 'q', payload: 'x'.repeat(2_001) })).status, 413)
  const deep = `{"items":[{"queue":"q","payload":${'['.repeat(200_000)}${']'.repeat(200_000)}}]}`
  const headers = { 'content-type': 'application/json' }
  const answer = await send('POST', api.at('/push'), undefined, { body: deep, headers })
  t.match(answer, { status: 400, body: { code: 'invalid_payload' } })
})

test('a push with more items than the limit is refused, not truncated', async (t) => {
  const queue = unique()
  const items = Array.from({ length: 10_001 }, () => ({ queue, payload: 1 }))
  t.match(await api.push(...items), { status: 400, body: { errors: [{ field: 'items' }] } })
  t.equal((await api.pop(queue)).status, 204)
})

test('10,000 items are stored by one push, and by one push of a transaction', async (t) => {
  const queue = unique()
  const items = Array.from({ length: 10_000 }, (_, payload) => ({ queue, payload }))
  const pushed = await api.push(...items)
  t.equal(pushed.status, 201)
  t.equal(new Set(pushed.body.map((item: { message_id: string }) => item.message_id)).size, 10_000)
  const operations = [{ type: 'push', items }]
  t.equal((await api.post('/transaction', { operations })).status, 200)
  const { body } = await api.get(`/resources/queues/${queue}`)
  t.equal(body.messages, 20_000)
})

test('an item has a dedupeKey, and its result the names of this API beside the old ones', async (t) => {
  const queue = unique()
  const first = await api.push(
    { queue, payload: 1, dedupeKey: 'k' },
    { queue, partition: 'p', payload: 2 },
    { queue, payload: 3, delayMs: 60_000 },
    { queue, payload: 4, transactionId: 'old' },
  )
  const [one, two, three, four] = first.body
  t.match(one, { status: 'queued', queue, partition: null, dedupeKey: 'k', index: 0 })
  t.equal(one.id, one.message_id)
  t.equal(one.partitionId, one.partition_id)
  t.equal(one.transaction_id, 'k')
  t.match(
    [two, three, four],
    [
      { partition: 'p', dedupeKey: null },
      { status: 'scheduled', dedupeKey: null },
      { dedupeKey: 'old' },
    ],
  )
  const [again] = (await api.push({ queue, payload: 1, dedupeKey: 'k' })).body
  t.match(again, { status: 'duplicate', id: one.id, dedupeKey: 'k' })
  const [older] = (await api.push({ queue, payload: 1, transactionId: 'k' })).body
  t.match(older, { status: 'duplicate', id: one.id })
  t.match(await api.push({ queue, payload: 1, dedupeKey: 'a', transactionId: 'b' }), {
    status: 400,
    body: { errors: [{ field: 'items[0].dedupeKey' }] },
  })
  t.match(await api.push({ queue, payload: 1, dedupeKey: '..' }), {
    status: 400,
    body: { code: 'invalid_name', errors: [{ field: 'items[0].dedupeKey' }] },
  })
})

test('null means absent, as older clients send it, except as a payload', async (t) => {
  const queue = unique()
  const item = { queue, partition: null, transactionId: null, traceId: null, headers: null }
  t.equal((await api.push({ ...item, payload: null })).status, 201)
  const { body } = await api.pop(queue)
  t.match(body.messages, [{ data: null, partition: null, traceId: null, headers: null }])
})

test('headers and traceId are delivered', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1, headers: { a: [1] }, traceId: 'trace' })
  t.match((await api.pop(queue)).body.messages, [{ headers: { a: [1] }, traceId: 'trace' }])
})

test('a push to a full queue is 429 with Retry-After', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { maxSize: 1 } })
  t.equal((await api.push({ queue, payload: 1 })).status, 201)
  const full = await api.push({ queue, payload: 2 })
  t.match(full, { status: 429, body: { code: 'queue_full', retryable: true } })
  t.equal(full.headers.get('retry-after'), '1')
})

test('a repeated push to a full queue is a duplicate, not 429', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { maxSize: 1 } })
  const item = { queue, payload: 1, transactionId: 'same' }
  const first = await api.push(item)
  const { message_id, partition_id } = first.body[0]
  t.match(await api.push(item), {
    status: 201,
    body: [{ status: 'duplicate', message_id, partition_id, transaction_id: 'same' }],
  })
  t.equal((await api.push(item, { queue, payload: 2 })).status, 429, 'all or nothing')
})

test('one invalid push among a hundred fails alone', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue: `${queue}-full`, options: { maxSize: 1 } })
  await api.push({ queue: `${queue}-full`, payload: 0 })
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => {
      return api.push({ queue: i === 50 ? `${queue}-full` : queue, payload: i })
    }),
  )
  t.equal(answers.filter(({ status }) => status === 201).length, 99)
  t.equal(answers[50]?.status, 429)
})

test('the text of a response is what the results of a transaction contain', async (t) => {
  const name = 'a "quoted" name \\ é\u2028'
  const items = [name, name, 'other'].map((queue) => ({ queue, id: '', payload: '1' }))
  const keyed = { queue: 'other', id: '', payload: '1', transactionId: name }
  const place = { messageId: 'm', partitionId: '7', partition: name }
  const pushed: PushedMessage[] = [
    { ...place, status: 'queued', seq: 1 },
    { ...place, status: 'duplicate', partition: null },
    { ...place, status: 'scheduled' },
    { ...place, status: 'replaced' },
  ]
  const all = [...items, keyed]
  t.same(JSON.parse(pushedJson(all, pushed)), toPushedAnswer(all, pushed))
  t.equal(pushedJson([], []), '[]')
})
