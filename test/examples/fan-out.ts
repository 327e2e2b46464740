// Two consumer groups: each gets every message, at its own pace. Within a group each message goes to one
// worker.
import { Rouse } from '@rouse/client'

interface Queues {
  signups: { user: string }
}

const rouse = new Rouse<Queues>({ urls: process.argv.slice(2) })
const signups = rouse.queue('signups')

let left = 4
const done = new Promise<void>((resolve) => {
  for (const group of ['mailer', 'audit']) {
    // Without `from`, a new group begins with messages that are pushed after its first request.
    signups.group(group).work({ from: 'all' }, ({ data }) => {
      console.log(`${group}: ${data.user}`)
      left -= 1
      if (left === 0) resolve()
    })
  }
})

await signups.pushMany([{ payload: { user: 'ann' } }, { payload: { user: 'bob' } }])
await done
await rouse.close()
