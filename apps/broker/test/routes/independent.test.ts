// Messages without a partition over HTTP: how they are stored, delivered and shown.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf, send } from '../support/http.ts'
import { untilWaiting } from '../support/node-state.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)

interface Shown {
  readonly data: unknown
  readonly partition: string | null
}

const shown = (messages: readonly Shown[]) =>
  messages.map(({ data, partition }) => [data, partition])

test('an absent and a null partition are independent, every string is ordered', async (t) => {
  const queue = unique()
  const { status, body: pushed } = await api.push(
    { queue, payload: 1 },
    { queue, payload: 2, partition: null },
    { queue, payload: 3, partition: 'Default' },
    { queue, payload: 4, partition: 'Default' },
    { queue, payload: 5, delayMs: 3_600_000 },
  )
  t.equal(status, 201)
  t.same(
    pushed.map(({ partition }: Shown) => partition),
    [null, null, 'Default', 'Default', null],
  )
  const popped: Shown[] = []
  for (let i = 0; i < 4; i += 1) popped.push(...((await api.pop(queue)).body?.messages ?? []))
  t.same(
    new Set(shown(popped).map((one) => JSON.stringify(one))),
    new Set(['[1,null]', '[2,null]', '[3,"Default"]']),
    '4 waits for 3',
  )
  const { body: listed } = await api.get(`/messages?queue=${queue}`)
  t.same(
    shown(listed.messages).toSorted(([a], [b]) => Number(a) - Number(b)),
    [
      [1, null],
      [2, null],
      [3, 'Default'],
      [4, 'Default'],
      [5, null],
    ],
  )
  const named = await api.get(`/messages?queue=${queue}&partition=Default`)
  t.same(shown(named.body.messages), [
    [3, 'Default'],
    [4, 'Default'],
  ])
  const scheduled = await api.get(`/messages?queue=${queue}&status=scheduled`)
  t.same(shown(scheduled.body.messages), [[5, null]])
  t.match(await api.push({ queue, payload: 1, partition: '\u001f0' }), { status: 400 })
  const { body: details } = await api.get(`/resources/queues/${queue}`)
  t.match(details, { partitions: 1, options: { ordering: 'keyed' } })
})

test('the response of a pop shows no partition for independent messages', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const { body } = await api.pop(queue, '?batch=2')
  t.match(body, { queue, partition: null, messages: [{ partition: null }, { partition: null }] })
  t.type(body.partitionId, 'string')
})

test('a queue with another ordering stores a message without a partition in Default', async (t) => {
  for (const ordering of ['partition', 'none']) {
    const queue = unique()
    await api.post('/configure', { queue, options: { ordering } })
    const { body } = await api.push(
      { queue, payload: 1 },
      { queue, payload: 2, partition: 'Default' },
      { queue, payload: 3 },
    )
    t.same(new Set(body.map(({ partition }: Shown) => partition)), new Set(['Default']))
    const popped = await api.pop(queue, '?batch=9')
    t.same(new Set(popped.body.messages.map(({ data }: Shown) => data)), new Set([1, 2, 3]))
  }
})

test('dead letters of independent messages are listed, redriven and removed', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  for (let i = 0; i < 2; i += 1) {
    const { body } = await api.pop(queue)
    await api.ack(body.messages[0], 'dlq')
  }
  const { body: letters } = await api.get(`/dlq?queue=${queue}`)
  t.match(letters.messages, [{ partition: null }, { partition: null }])
  const dryRun = await api.post('/dlq/redrive', { queue, dryRun: true })
  t.match(dryRun.body, { total: 2, lanes: [{ partition: null, count: 2 }] })
  const [first] = letters.messages
  const path = `/messages/${first.partitionId}/${first.transactionId}`
  t.match((await api.del(path)).body, { deleted: 1 })
  t.equal((await api.post('/dlq/redrive', { queue })).status, 202)
  const again = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(again.body.messages, [{ partition: null, attempt: 1 }])
  t.match(
    (await api.get(`/messages/${first.partitionId}/${again.body.messages[0].transactionId}`)).body,
    {
      partition: null,
    },
  )
})

test('a group is moved in its independent messages, too', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  await api.pop(queue, '?batch=2&autoAck=true')
  t.equal((await api.pop(queue)).status, 204)
  const seek = `/consumer-groups/__QUEUE_MODE__/queues/${queue}/seek`
  await api.post(seek, { timestamp: '2020-01-01T00:00:00Z' })
  t.equal((await api.pop(queue, '?batch=2')).body.messages.length, 2)
})

test('a transaction and a schedule push independent messages', async (t) => {
  const queue = unique()
  const items = [
    { queue, payload: 1 },
    { queue, payload: 2, partition: null },
  ]
  const { body } = await api.post('/transaction', { operations: [{ type: 'push', items }] })
  t.match(body.results, [{ items: [{ partition: null }, { partition: null }] }])
  const name = unique()
  const put = await send('PUT', api.at(`/schedules/${name}`), {
    queue,
    cron: '* * * * * *',
    payload: 3,
  })
  t.match(put.body, { partition: null })
  await eventually(async () => (await api.get(`/messages?queue=${queue}`)).body.messages.length > 2)
  await api.del(`/schedules/${name}`)
  const one = await api.pop(queue)
  const two = await api.pop(queue)
  t.same(
    [...shown(one.body.messages), ...shown(two.body.messages)],
    [
      [1, null],
      [2, null],
    ],
  )
})

test('a waiter of a partition is not woken by independent messages, a waiter of the queue is', async (t) => {
  const queue = unique()
  const named = api.get(`/pop/queue/${queue}/partition/Default?wait=true&timeout=20000`)
  const any = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 2)
  await api.push({ queue, payload: 1 })
  t.same(shown((await any).body.messages), [[1, null]])
  await api.push({ queue, payload: 2, partition: 'Default' })
  t.same(shown((await named).body.messages), [[2, 'Default']])
})

test('why names no partition for independent messages that are leased', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [3_600_000] } })
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0], 'failed')
  await api.pop(queue)
  const { body: why } = await api.get(`/resources/queues/${queue}/why`)
  const text = JSON.stringify(why)
  t.notMatch(text, 'u001f')
  t.notMatch(text, 'held_lane')
})
