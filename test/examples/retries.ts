// A typed worker whose failures are retried, given up or postponed, and whose results the producer reads.
import { Discard, exponential, RetryIn, Rouse } from '@rouse/client'

interface Queues {
  payments: { order: number; card: 'good' | 'slow' | 'broken' | 'stolen' }
}

const rouse = new Rouse<Queues>({ urls: process.argv.slice(2), consumer: 'cashier' })
const payments = rouse.queue('payments')
await payments.configure({
  retry: { limit: 2, backoff: exponential('50ms', { max: '1s' }) },
  history: 'all', // keeps what handlers return
})

const worker = payments.work({ concurrency: 5, onError: () => {} }, async (message, context) => {
  const { order, card } = message.data
  if (card === 'stolen') throw new Discard('the card is stolen') // a dead letter at once
  if (card === 'slow' && message.attempt === 1) throw new RetryIn('200ms') // with a delay of its own
  if (card === 'broken') throw new Error('the terminal is broken') // twice again, then a dead letter
  await context.progress({ percent: 50 })
  return { receipt: `R-${order}`, attempts: message.attempt }
})

const cards = ['good', 'slow', 'broken', 'stolen'] as const
const pushed = await payments.pushMany(
  cards.map((card, i) => ({ payload: { order: i + 1, card }, unique: { key: `order-${i + 1}` } })),
)
for (const [i, { id }] of pushed.entries()) {
  const { state, result, groups } = await rouse.messages.wait(id, { consumerGroup: 'default' })
  console.log(cards[i], state, JSON.stringify(result ?? groups[0]?.errorMessage))
}

await worker.stop()
await rouse.close()
