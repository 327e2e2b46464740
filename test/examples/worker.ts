// Sends e-mails, twenty at a time. Run this program with `node --import tsx test/examples/worker.ts
// http://127.0.0.1:4600`.
import { Rouse } from '@rouse/client'

interface Queues {
  emails: { to: string; template: string }
}

const rouse = new Rouse<Queues>({ urls: process.argv.slice(2) })

await rouse.queue('emails').push({ to: 'ann@example.com', template: 'welcome' })
await rouse.queue('emails').push({ to: 'bob@example.com', template: 'welcome' }, { delay: '1s' })
await rouse.queue('emails').push({ to: 'carol', template: 'welcome' })

const worker = rouse.queue('emails').work({ concurrency: 20 }, async ({ data }, context) => {
  if (!data.to.includes('@')) return await context.deadLetter('no address')
  console.log(`sent ${data.template} to ${data.to}`) // returning acknowledges, throwing retries
})

process.once('SIGTERM', () => void stop())

async function stop(): Promise<void> {
  await worker.stop() // waits for running handlers and releases messages that no handler has started
  await rouse.close()
  console.log('stopped')
}
