// How a worker stops while handlers do not end, while a response is on its way, and while no node is
// reachable.
import { type AddressInfo, connect, createServer } from 'node:net'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { clientOf, startCluster, unique } from '../support/cluster.ts'

const patience = { timeoutMs: 60_000 }

test('a stop aborts handlers after its timeout and releases their messages at once', async (t) => {
  const cluster = await startCluster(t, 1)
  const rouse = clientOf(t, cluster.urls)
  const queue = rouse.queue(unique())
  await queue.push('listens', { partition: 'a' })
  await queue.push('is deaf', { partition: 'b' })
  let running = 0
  let aborted = 0
  const worker = queue.work(async ({ data }, { signal }) => {
    running += 1
    await new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted += 1
        if (data === 'listens') reject(signal.reason)
      })
    })
  })
  await eventually(() => running === 2)
  await worker.stop({ timeout: '100ms' })
  t.equal(aborted, 2)
  const back = await queue.pop({ batch: 10, partitions: 10, wait: '5s' })
  t.match(back.map(({ data, attempt }) => `${data} ${attempt}`).sort(), ['is deaf 1', 'listens 1'])
})

test('messages that arrive during a stop are released at once, uncharged', async (t) => {
  const cluster = await startCluster(t, 1)
  const direct = clientOf(t, cluster.urls)
  const name = unique()
  const proxy = await holdingProxy(t, cluster.urls[0] as string)
  const queue = clientOf(t, proxy.url).queue(name)
  const seen: unknown[] = []
  const worker = queue.work({ lease: '60s' }, ({ data }) => void seen.push(data))
  await eventually(async () => (await waiting(cluster.urls[0] as string)) > 0, patience)
  proxy.hold()
  await direct.queue(name).push('crosses')
  await eventually(() => proxy.held > 0, patience)
  const stopped = worker.stop()
  await proxy.release()
  await stopped
  t.same(seen, [])
  const [message] = await direct.queue(name).pop({ wait: '5s' })
  t.match(message, { data: 'crosses', attempt: 1 })
})

test('a stop keeps its timeout when the cluster is unreachable', async (t) => {
  const cluster = await startCluster(t, 1)
  const rouse = clientOf(t, cluster.urls)
  const queue = rouse.queue(unique())
  await queue.pushMany([1, 2, 3].map((n) => ({ payload: n, partition: `p${n}` })))
  const errors: string[] = []
  let running = 0
  let go: () => void = () => {}
  const gone = new Promise<void>((resolve) => {
    go = resolve
  })
  const worker = queue.work(
    {
      concurrency: 2,
      prefetch: 1,
      onError: (error, { kind }) => errors.push(`${kind} ${String(error)}`),
    },
    async () => {
      running += 1
      await gone
    },
  )
  await eventually(() => running === 2, patience)
  await cluster.kill(0, 'SIGKILL')
  go()
  const begunMs = performance.now()
  await worker.stop({ timeout: '2s' })
  const tookMs = performance.now() - begunMs
  t.ok(tookMs < 4_000, `${Math.round(tookMs)} ms`)
  t.ok(
    errors.some((error) => error.startsWith('ack')),
    `failed acknowledgements are reported: ${errors.join(' | ')}`,
  )
})

/** Returns the number of pops that wait on this node. */
async function waiting(url: string): Promise<number> {
  const stats = (await (await fetch(`${url}/stats`)).json()) as { waiting: { total: number } }
  return stats.waiting.total
}

/** A proxy that forwards bytes both ways. After `hold`, it keeps responses back until `release`. */
async function holdingProxy(t: Test, target: string) {
  const { hostname, port } = new URL(target)
  let holding = false
  let held: (() => void)[] = []
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const node = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const answer = (act: () => void): void => void (holding ? held.push(act) : act())
    client.on('data', (bytes) => node.write(bytes))
    client.on('end', () => node.end())
    client.on('close', () => node.destroy())
    node.on('data', (bytes) => answer(() => client.write(bytes)))
    node.on('end', () => answer(() => client.end()))
    for (const socket of [client, node]) socket.on('error', () => {})
    t.teardown(() => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold() {
      holding = true
    },
    get held() {
      return held.length
    },
    /** Releases the responses after one turn of the event loop, in which the client's bytes arrive. */
    async release() {
      await new Promise((resolve) => setImmediate(resolve))
      holding = false
      for (const act of held.splice(0)) act()
      held = []
    },
  }
}
