// Each step acknowledges its message and pushes the next one in one transaction: an order is never billed
// twice and never lost between two queues.
import { Rouse } from '@rouse/client'

interface Queues {
  orders: { order: number; cents: number }
  invoices: { order: number; text: string }
}

const rouse = new Rouse<Queues>({ urls: process.argv.slice(2) })

rouse.queue('orders').work(async ({ data }, context) => {
  const text = `${(data.cents / 100).toFixed(2)} EUR`
  const partition = `order-${data.order}`
  await context.ack({
    push: [{ queue: 'invoices', payload: { order: data.order, text }, partition }],
  })
})

for (const order of [1, 2, 3]) {
  await rouse.queue('orders').push({ order, cents: order * 1_050 }, { dedupeKey: `order-${order}` })
}

let billed = 0
for await (const { data } of rouse.queue('invoices').messages()) {
  console.log(`order ${data.order}: ${data.text}`) // the request for the next message acknowledges this one
  billed += 1
  if (billed === 3) break
}
await rouse.close()
