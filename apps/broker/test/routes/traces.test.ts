// The timeline of a message: events that consumers report, and failed attempts.
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

type Event = { eventType: string; data: unknown }

test('a timeline lists events and failed attempts, oldest first', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [0] } })
  await api.push({ queue, partition: 'p', payload: 1, transactionId: 'a b' })
  const [message] = (await api.pop(queue, '?consumerGroup=g')).body.messages
  const { transactionId, partitionId } = message
  const tell = (more: object) => api.post('/traces', { transactionId, partitionId, ...more })
  t.match(await tell({ consumerGroup: 'g', eventType: 'began', data: { step: 1 } }), {
    status: 201,
    body: { success: true, id: /^\d+$/ },
  })
  await api.ack(message, 'failed', { errorCode: 'E', error: 'because' })
  await tell({ data: null })
  const answer = await api.get(`/traces/${partitionId}/${encodeURIComponent(transactionId)}`)
  t.match(answer, {
    status: 200,
    body: {
      traces: [
        {
          eventType: 'began',
          consumerGroup: 'g',
          data: { step: 1 },
          queue,
          partition: 'p',
          partitionId,
          transactionId: 'a b',
          createdAt: /Z$/,
          traceNames: [],
        },
        {
          eventType: 'attempt',
          consumerGroup: 'g',
          data: { attempt: 1, outcome: 'failed', errorCode: 'E', errorMessage: 'because' },
        },
        { eventType: 'info', data: null, consumerGroup: null },
      ],
    },
  })
  t.equal(answer.body.traces.length, 3)
})

test('events are found by name, newest first, in pages', async (t) => {
  const queue = unique()
  const { body } = await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const [name, other] = [`order/${unique()}`, unique('name')]
  for (const [i, { transaction_id: transactionId, partition_id: partitionId }] of body.entries()) {
    const traceNames = i === 0 ? [name, other] : [name]
    await api.post('/traces', { transactionId, partitionId, traceNames, data: i })
  }
  const byName = async (of: string, query = '') =>
    (await api.get(`/traces/by-name/${encodeURIComponent(of)}${query}`)).body
  const dataOf = ({ traces }: { traces: Event[] }) => traces.map(({ data }) => data)
  t.same(dataOf(await byName(name)), [1, 0])
  t.same(dataOf(await byName(other)), [0])
  t.same(dataOf(await byName('unknown')), [])
  const first = await byName(name, '?limit=1')
  t.same(dataOf(first), [1])
  t.same(dataOf(await byName(name, `?limit=1&cursor=${first.cursor}`)), [0])
  const { names } = (await api.get('/traces/names')).body
  t.match(
    names.filter((one: { name: string }) => [name, other].includes(one.name)),
    [
      { name, events: 2, lastAt: /Z$/ },
      { name: other, events: 1 },
    ],
  )
})

test('unknown messages are 404, and invalid parameters are 400', async (t) => {
  const queue = unique()
  const { body } = await api.push({ queue, payload: 1 })
  const good = { transactionId: 't', partitionId: body[0].partition_id, data: 1 }
  for (const partitionId of ['999999999', 'x', '99999999999999999999']) {
    t.equal((await api.post('/traces', { ...good, partitionId })).status, 404, partitionId)
    t.equal((await api.get(`/traces/${partitionId}/t`)).status, 404, partitionId)
  }
  for (const more of [{ traceNames: [''] }, { traceNames: 'x' }, { transactionId: '\u0001' }]) {
    t.equal((await api.post('/traces', { ...good, ...more })).status, 400, JSON.stringify(more))
  }
  t.equal((await api.post('/traces', { ...good, traceNames: Array(101).fill('n') })).status, 400)
  t.equal((await api.get('/traces/by-name/n?cursor=x')).status, 400)
  t.equal((await api.get('/traces/names?limit=0')).status, 400)
})
