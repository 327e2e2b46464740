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
  // The report that the worker is ready, and the notice that no node waits for messages.
  await eventually(async () => (await sends()) >= 2)
  const before = await sends()
  await api.push({ queue: 'counted', payload: 1 })
  for (let i = 0; i < 5; i += 1) {
    t.equal(await sends(), before, 'neither /stats nor a push that no node waits for is counted')
  }
  t.equal((await api.pop('counted', '?wait=true&timeout=20000')).status, 200)
  t.ok((await sends()) > before)
})
