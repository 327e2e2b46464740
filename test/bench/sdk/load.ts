// A producer or consumer of `npm run bench -- sdk`. Runs as a separate process, which takes one job as JSON
// and prints the results.
import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'
import type { Rouse } from '@rouse/client'

export interface SdkJob {
  readonly kind: 'produce' | 'consume'
  /** The URL of the module of the client under test. */
  readonly client: string
  readonly url: string
  readonly queue: string
  /** Otherwise the queue has `ordering: none`. */
  readonly isOrdered: boolean
  /** The number of concurrent pushes or handlers. */
  readonly inFlight: number
  readonly partitions: number
  readonly seconds: number
  /** The time of an uncounted load on a separate queue, until code is compiled and caches are warm. */
  readonly warmUpSeconds: number
}

export interface SdkFigures {
  readonly messages: number
  readonly cpuSeconds: number
  /** The number of requests by their path. */
  readonly requests: Readonly<Record<string, number>>
  /** A sorted sample: durations of pushes (producer), or ages of messages at their delivery (consumer). */
  readonly latenciesMs: number[]
}

interface Client {
  readonly Rouse: typeof Rouse
}

interface Payload {
  readonly n: number
  readonly sentMs: number
  readonly text: string
}

const sampleEvery = 16
const text = 'x'.repeat(150) // about 200 bytes with the rest

const job = JSON.parse(process.argv[2] ?? '') as SdkJob
const client = (await import(job.client)) as Client
const rouse = new client.Rouse({ urls: [job.url] }) as Rouse<Record<string, Payload>>
let latenciesMs: number[] = []
let requests: Record<string, number> = {}
subscribe('http.client.request.start', (message) => {
  const { path } = (message as { request: ClientRequest }).request
  const kind = /^\/api\/v1\/(\w+)/.exec(path)?.[1] ?? 'other'
  requests[kind] = (requests[kind] ?? 0) + 1
})
await warmUp()
const before = process.cpuUsage()
const messages = job.kind === 'produce' ? await produce() : await consume()
await rouse.close()
const { user, system } = process.cpuUsage(before)
const figures: SdkFigures = {
  messages,
  cpuSeconds: (user + system) / 1e6,
  requests,
  latenciesMs: latenciesMs.sort((a, b) => a - b),
}
process.stdout.write(JSON.stringify(figures))
process.exit(0)

async function warmUp(): Promise<void> {
  const name = `${job.queue}-${job.kind}`
  for (const queue of [name, job.queue]) {
    await rouse.queue(queue).configure({ ordering: job.isOrdered ? 'partition' : 'none' })
  }
  const worker = rouse.queue(name).work({ concurrency: job.inFlight }, async () => {})
  await pushFor(name, job.warmUpSeconds)
  await worker.stop()
  latenciesMs = []
  requests = {}
}

async function produce(): Promise<number> {
  process.send?.('ready')
  await new Promise((resolve) => process.once('message', resolve))
  process.disconnect()
  return await pushFor(job.queue, job.seconds)
}

/** Pushes one message per call, with `inFlight` concurrent calls. */
async function pushFor(name: string, seconds: number): Promise<number> {
  const queue = rouse.queue(name)
  const endMs = performance.now() + seconds * 1000
  let next = 0
  const loops = Array.from({ length: job.inFlight }, async () => {
    while (performance.now() < endMs) {
      const n = next++
      const sentMs = performance.timeOrigin + performance.now()
      const options = job.partitions === 1 ? {} : { partition: `p${n % job.partitions}` }
      await queue.push({ n, sentMs, text }, options)
      if (n % sampleEvery === 0) {
        latenciesMs.push(performance.timeOrigin + performance.now() - sentMs)
      }
    }
  })
  await Promise.all(loops)
  return next
}

/**
 * Runs until the parent has reported the number of messages and all of them have arrived, each exactly once.
 */
async function consume(): Promise<number> {
  const seen = new Set<number>()
  let expected = Number.POSITIVE_INFINITY
  await new Promise<void>((resolve, reject) => {
    process.on('message', (count: number) => {
      expected = count
      if (seen.size === expected) resolve()
    })
    rouse
      .queue(job.queue)
      .work({ concurrency: job.inFlight, onError: reject }, async ({ data }) => {
        if (seen.has(data.n)) reject(new Error(`message ${data.n} came twice`))
        seen.add(data.n)
        if (data.n % sampleEvery === 0) {
          latenciesMs.push(performance.timeOrigin + performance.now() - data.sentMs)
        }
        if (seen.size === expected) resolve()
      })
    process.send?.('ready')
  })
  process.disconnect()
  return seen.size
}
