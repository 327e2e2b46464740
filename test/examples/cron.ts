// A schedule pushes one message per tick of its cron pattern, however many nodes the cluster has. `upsert`
// replaces the schedule, so every process may call it at start-up.
import { Rouse } from '@rouse/client'

interface Queues {
  reports: { kind: string }
}

const rouse = new Rouse<Queues>({ urls: process.argv.slice(2) })
await rouse.schedules.upsert('figures', {
  queue: 'reports',
  cron: '* * * * * *', // every second; '0 3 * * 1-5' is 3 o'clock on working days
  timeZone: 'Europe/Berlin',
  payload: { kind: 'figures' },
})

let reports = 0
for await (const { data, headers } of rouse.queue('reports').messages()) {
  console.log(`${data.kind} for ${String(headers?.scheduledAt)}`)
  reports += 1
  if (reports === 3) break
}
await rouse.schedules.delete('figures')
await rouse.close()
