// All nodes of a cluster are equal: calls are distributed over them, and a message pushed through one node
// wakes a worker that waits on another. One of the URLs may be a node that is down.
import { Rouse } from '@rouse/client'

interface Queues {
  ticks: number
}

const urls = process.argv.slice(2)
const rouse = new Rouse<Queues>({ urls })

let handled = 0
const done = new Promise<void>((resolve) => {
  rouse.queue('ticks').work({ concurrency: 5 }, () => {
    handled += 1
    if (handled === 100) resolve()
  })
})
await Promise.all(
  Array.from({ length: 100 }, (_, n) => rouse.queue('ticks').push(n, { partition: `p${n % 10}` })),
)
await done
console.log(`${handled} messages by way of ${urls.length} nodes`)
await rouse.close()
