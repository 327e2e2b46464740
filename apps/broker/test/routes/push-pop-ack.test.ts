import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'

test('a message is pushed, popped and acknowledged', async (t) => {
  const { url } = await startBroker(t)
  const api = apiOf(url)

  const pushed = await api.push({ queue: 'first', payload: { n: 1 } })
  t.equal(pushed.status, 201)
  t.match(pushed.body, [{ index: 0, status: 'queued', message_id: /-7/, queueName: 'first' }])

  const popped = await api.pop('first')
  t.equal(popped.status, 200)
  t.equal(popped.body.messages[0].transactionId, pushed.body[0].transaction_id)
  t.same(popped.body.messages[0].data, { n: 1 })

  const acked = await api.ack(popped.body.messages[0])
  t.equal(acked.status, 200)
  t.match(acked.body, [{ index: 0, success: true }])
  t.equal((await api.pop('first')).status, 204)
})

test('/stats counts the sends between a primary and its workers, without those of /stats itself', async (t) => {
  const { url } = await startBroker(t, { env: { ROUSE_WORKERS: '1' } })
  const api = apiOf(url)
  const sends = async () => {
    const stats = (await (await fetch(`${url}/stats`)).json()) as { ipc: { sends: number } }
    return stats.ipc.sends
  }
  await api.push({ queue: 'counted', payload: 1 })
  // The report that the worker is ready, and the hint of the push.
  await eventually(async () => (await sends()) === 2)
  for (let i = 0; i < 5; i += 1) await sends()
  t.equal(await sends(), 2)
  await api.push({ queue: 'counted', payload: 2 })
  await eventually(async () => (await sends()) === 3)
})
