// A schedule pushes one message per tick of its cron pattern, however many nodes the cluster has. Posting a
// schedule again replaces it, so every process may post it at start-up.
import { Rouse } from '@rouse/client'

interface Queues {
  reports: { kind: string }
}

const [url = ''] = process.argv.slice(2)

await fetch(`${url}/api/v1/schedules`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    name: 'figures',
    queue: 'reports',
    cron: '* * * * * *', // every second; '0 3 * * 1-5' is 3 o'clock on working days
    timeZone: 'Europe/Berlin',
    payload: { kind: 'figures' },
  }),
})

const rouse = new Rouse<Queues>({ urls: process.argv.slice(2) })
let reports = 0
for await (const { data, headers } of rouse.queue('reports').messages()) {
  console.log(`${data.kind} for ${String(headers?.scheduledAt)}`)
  reports += 1
  if (reports === 3) break
}
await fetch(`${url}/api/v1/schedules/figures`, { method: 'DELETE' })
await rouse.close()
