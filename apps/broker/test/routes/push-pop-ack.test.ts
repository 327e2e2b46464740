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
