import { request } from 'node:http'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { ackOf, apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const broker = await sharedBroker({ instrumented: true, env: { ROUSE_LOG_LEVEL: 'debug' } })
const { url, database, log } = broker
const api = apiOf(url)

async function waiters(queue: string): Promise<number> {
  const { body } = await send('GET', `${url}/stats`)
  const groups = body.group_backoff.groups as { key: string; waiting: number }[]
  return groups.find(({ key }) => key.startsWith(`${queue}/`))?.waiting ?? 0
}

test('one message wakes one of many waiters, and the others keep waiting', async (t) => {
  const queue = unique()
  const answers: number[] = []
  const pops = Array.from({ length: 20 }, () =>
    api.pop(queue, '?wait=true&timeout=1500').then(({ status }) => answers.push(status)),
  )
  await eventually(async () => (await waiters(queue)) === 20)
  await api.push({ queue, payload: 1 })
  await eventually(() => answers.includes(200))
  t.same(answers, [200])
  await Promise.all(pops)
  t.equal(answers.filter((status) => status === 204).length, 19)
})

test('each of many waiters gets one message if every message has its own partition', async (t) => {
  const queue = unique()
  const pops = Array.from({ length: 20 }, () => api.pop(queue, '?wait=true&timeout=10000'))
  await eventually(async () => (await waiters(queue)) === 20)
  await api.push(
    ...Array.from({ length: 20 }, (_, n) => ({ queue, partition: `p${n}`, payload: n })),
  )
  const answers = await Promise.all(pops)
  const seen = answers.map(({ body }) => body.messages[0].data).sort((a, b) => a - b)
  t.same(
    seen,
    Array.from({ length: 20 }, (_, n) => n),
  )
})

test('a waiter that disconnects is removed', async (t) => {
  const queue = unique()
  const gone = new AbortController()
  const waiting = fetch(api.at(`/pop/queue/${queue}?wait=true`), { signal: gone.signal })
  await eventually(async () => (await waiters(queue)) === 1)
  gone.abort()
  await t.rejects(waiting)
  await eventually(async () => (await waiters(queue)) === 0)
})

test('messages popped for clients that disconnect meanwhile are not lost', async (t) => {
  const queue = unique()
  const count = 20
  await api.push(
    ...Array.from({ length: count }, (_, n) => ({ queue, partition: `p${n}`, payload: n })),
  )
  const barrier = await database.armBarrier('pop-begun')
  const clients = Array.from({ length: count }, () => {
    const client = request(api.at(`/pop/queue/${queue}?wait=true`), { agent: false })
    client.on('error', () => {})
    client.end()
    return client
  })
  await eventually(async () => (await waiters(queue)) === count)
  for (const client of clients) client.destroy()
  await barrier.release()
  const began = performance.now()
  const seen = new Set<number>()
  while (seen.size < count) {
    const { body } = await api.pop(
      queue,
      '?wait=true&timeout=1000&batch=100&partitions=100&autoAck=true',
    )
    for (const message of body?.messages ?? []) seen.add(message.data)
    if (performance.now() - began > 5_000) break
  }
  t.equal(seen.size, count)
  t.ok(performance.now() - began < 2_000, `took ${performance.now() - began} ms`)
})

test('the log has an event for each claimed, completed and failed message', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 'secret' })
  const first = await api.pop(queue)
  await api.ack(first.body.messages[0], 'retry')
  const second = await api.pop(queue, '?wait=true&timeout=5000')
  await api.ack(second.body.messages[0])
  const { transactionId } = first.body.messages[0]
  const events = () =>
    log.filter((entry) => entry.transactionId === transactionId && entry.event !== 'claimed')
  await eventually(() => events().length === 2)
  t.match(events(), [
    { event: 'failed', status: 'retry', willRetry: true },
    { event: 'completed', status: 'completed' },
  ])
  t.ok(
    log.some((entry) => entry.event === 'claimed' && entry.queue === queue && entry.attempt === 1),
  )
  t.notMatch(JSON.stringify(log), /secret/)
})

test('the log has these events also for a whole lease and for a transaction', async (t) => {
  const [whole, part] = [unique(), unique()]
  await api.push({ queue: whole, payload: 1 }, { queue: whole, payload: 2 })
  await api.push({ queue: part, payload: 3 })
  const lease = (await api.pop(whole, '?batch=2')).body.leaseId
  await api.post('/ack/batch', { leaseId: lease, status: 'failed' })
  const [message] = (await api.pop(part)).body.messages
  const operation = { type: 'ack', ...ackOf(message), status: 'completed' }
  t.equal((await api.post('/transaction', { operations: [operation] })).status, 200)
  const endings = await eventually(() => {
    const claimed = log.find(({ event, queue }) => event === 'claimed' && queue === whole)
    const ofLease = log.filter(
      ({ event, leaseId }) => event === 'failed' && leaseId === claimed?.leaseId,
    )
    const ofTransaction = log.filter(
      ({ event, transactionId }) =>
        event === 'completed' && transactionId === message.transactionId,
    )
    return ofLease.length > 0 && ofTransaction.length > 0 ? { ofLease, ofTransaction } : undefined
  })
  // There are two events if the ack went to the worker that delivered the messages, and one event otherwise.
  t.ok([1, 2].includes(endings.ofLease.length))
  t.ok(endings.ofLease.every(({ willRetry }) => willRetry === true))
  t.equal(endings.ofTransaction.length, 1)
})
