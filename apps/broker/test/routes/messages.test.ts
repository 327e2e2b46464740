// Listing and reading messages without consuming them.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)

interface Listed {
  readonly data: number
  readonly status: string
  readonly transactionId: string
  readonly partitionId: string
}

const list = async (queue: string, query = '') =>
  (await api.get(`/messages?queue=${queue}${query}`)).body as {
    messages: Listed[]
    cursor: string | null
  }
const dataOf = ({ messages }: { messages: Listed[] }) => messages.map(({ data }) => data)

/** Makes messages 1 to 6, which are completed, dead, retrying, leased, pending and scheduled. */
async function oneOfEach(queue: string): Promise<void> {
  await api.post('/configure', { queue, options: { retryBackoffMs: [60_000], onFailure: 'skip' } })
  const partition = 'Default'
  await api.push(...[1, 2, 3, 4, 5].map((payload) => ({ queue, partition, payload })))
  await api.push({ queue, partition, payload: 6, delayMs: 60_000 })
  const statuses = ['completed', 'dlq', 'failed']
  for (const status of statuses) {
    const { body } = await api.pop(queue)
    await api.ack(body.messages[0], status, { errorCode: 'E', error: 'because' })
  }
  await api.pop(queue)
}

test('messages are listed with their status for a consumer group', async (t) => {
  const queue = unique()
  await oneOfEach(queue)
  const { messages, cursor } = await list(queue)
  t.equal(cursor, null)
  t.same(
    messages.map(({ data, status }) => [data, status]),
    [
      [1, 'completed'],
      [2, 'dead'],
      [3, 'retrying'],
      [4, 'leased'],
      [5, 'pending'],
      [6, 'scheduled'],
    ],
  )
  t.match(messages[0], {
    id: /^[0-9a-f-]{36}$/,
    queue,
    partition: 'Default',
    partitionId: /^\d+$/,
    seq: 1,
    createdAt: /Z$/,
    headers: null,
  })
  for (const { data, status } of messages) {
    t.same(dataOf(await list(queue, `&status=${status}`)), [data], status)
  }
  t.same(
    (await list(queue, '&consumerGroup=other')).messages.map(({ status }) => status).slice(0, 5),
    Array(5).fill('pending'),
    'another group has consumed none of them',
  )
  const popped = await api.pop(queue)
  t.equal(popped.status, 204, 'nothing was consumed, and the lane is still leased')
})

test('a page starts where the previous one ended, whatever its size', async (t) => {
  const queue = unique()
  const payloads = Array.from({ length: 23 }, (_, i) => i)
  await api.push(...payloads.map((payload) => ({ queue, partition: `p${payload % 4}`, payload })))
  await api.push({ queue, payload: 23, delayMs: 60_000 }, { queue, payload: 24, delayMs: 60_000 })
  for (const limit of [1, 2, 5, 6, 25, 100]) {
    const seen: number[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`
      const page = await list(queue, `&limit=${limit}${after}`)
      seen.push(...dataOf(page))
      cursor = page.cursor
    }
    t.same(
      seen.sort((a, b) => a - b),
      [...payloads, 23, 24],
      `in pages of ${limit}`,
    )
  }
  t.same(dataOf(await list(queue, '&partition=p1')), [1, 5, 9, 13, 17, 21])
})

test('a message is shown with its payload, and with its attempts in every group', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [0] } })
  await api.push({ queue, payload: { n: 1 }, transactionId: 'own id', headers: { h: 1 } })
  const first = (await api.pop(queue, '?consumerGroup=a')).body.messages[0]
  await api.ack(first, 'failed', { errorCode: 'E', error: 'because' })
  await api.pop(queue, '?consumerGroup=a')
  await api.pop(queue, '?consumerGroup=b&autoAck=true')
  const path = `/messages/${first.partitionId}/${encodeURIComponent('own id')}`
  t.match(await api.get(path), {
    status: 200,
    body: {
      transactionId: 'own id',
      queue,
      data: { n: 1 },
      headers: { h: 1 },
      seq: 1,
      groups: [
        {
          consumerGroup: 'a',
          status: 'leased',
          attempts: 2,
          leaseExpiresAt: /Z$/,
          holder: String,
          history: [{ attempt: 1, outcome: 'failed', errorCode: 'E', errorMessage: 'because' }],
        },
        { consumerGroup: 'b', status: 'completed', attempts: 1, history: [] },
      ],
    },
  })
})

test('every listed message is found by its ids, including scheduled and dead-lettered ones', async (t) => {
  const queue = unique()
  await oneOfEach(queue)
  const { messages } = await list(queue)
  const { partitionId } = messages[0] as Listed
  for (const { transactionId, data, status } of messages) {
    const { body } = await api.get(`/messages/${partitionId}/${transactionId}`)
    t.equal(body.data, data, status)
    if (status !== 'scheduled') t.match(body.groups, [{ status }])
    else t.match(body, { seq: null, dueAt: /Z$/, groups: [] })
  }
})

test('a message is found by its transactionId without a deduplication key', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { dedupWindowSeconds: 0 } })
  const { body } = await api.push({ queue, payload: 1 }, { queue, payload: 2, transactionId: 'x' })
  t.match(await api.get(`/messages/${body[1].partition_id}/x`), { body: { data: 2, seq: 2 } })
})

test('following a queue returns existing and new messages, each once and in order', async (t) => {
  const queue = unique()
  await api.push(...[0, 1, 2].map((payload) => ({ queue, partition: `p${payload}`, payload })))
  const follow = async (cursor: string) => list(queue, `&follow=true&limit=2${cursor}`)
  const { cursor: end } = await follow('&cursor=end')
  const seen: number[] = []
  let cursor = ''
  const untilSeen = (count: number) =>
    eventually(async () => {
      const page = await follow(cursor)
      seen.push(...dataOf(page))
      cursor = `&cursor=${page.cursor}`
      return seen.length >= count
    })
  await untilSeen(3)
  for (const payload of [3, 4, 5]) await api.push({ queue, partition: `p${payload % 2}`, payload })
  await untilSeen(6)
  t.same(seen, [0, 1, 2, 3, 4, 5])
  const fresh = await eventually(async () => {
    const page = await list(queue, `&follow=true&cursor=${end}`)
    return page.messages.length >= 3 ? dataOf(page) : undefined
  })
  t.same(fresh.slice(-3), [3, 4, 5])
})

test('unknown queues and messages are 404, and invalid parameters are 400', async (t) => {
  const queue = unique()
  t.equal((await api.get(`/messages?queue=${queue}`)).status, 404)
  t.equal((await api.get(`/messages?queue=${queue}&follow=true`)).status, 404)
  await api.push({ queue, payload: 1 })
  for (const query of ['status=odd', 'cursor=x', 'limit=0', 'follow=1', 'partition=']) {
    t.equal((await api.get(`/messages?queue=${queue}&${query}`)).status, 400, query)
  }
  t.equal((await api.get('/messages')).status, 400)
  for (const path of ['1/none', 'x/1-1', '999999/999999-1', '99999999999999999999/x']) {
    t.equal((await api.get(`/messages/${path}`)).status, 404, path)
  }
})
