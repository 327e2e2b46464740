// Nodes die, stop and come back while handlers run. Nothing may be lost, and nothing handled twice while its lease lives.
import { type AddressInfo, connect, createServer } from 'node:net'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import type { Rouse } from '../src/index.ts'
import { clientOf, startCluster, unique } from './support/cluster.ts'

const patience = { timeoutMs: 60_000 }

/** Counts how often each message was handled. */
function tally() {
  const handled = new Map<number, number>()
  return {
    handled,
    add: (n: number) => void handled.set(n, (handled.get(n) ?? 0) + 1),
    get twice() {
      return [...handled].filter(([, times]) => times > 1).map(([n]) => n)
    },
  }
}

async function pushNumbers(rouse: Rouse, queue: string, count: number): Promise<void> {
  await rouse
    .queue(queue)
    .pushMany(Array.from({ length: count }, (_, n) => ({ payload: n, partition: `p${n % 40}` })))
}

async function expectEmpty(t: Test, rouse: Rouse, queue: string): Promise<void> {
  t.same(await rouse.queue(queue).pop({ batch: 100, partitions: 100 }), [], 'nothing is left')
}

test('a node is killed while twenty handlers run', async (t) => {
  const cluster = await startCluster(t, 2)
  const rouse = clientOf(t, cluster.urls)
  const queue = unique()
  await pushNumbers(rouse, queue, 200)
  const count = tally()
  let running = 0
  let killed: Promise<void> | undefined
  rouse.queue(queue).work({ concurrency: 20, lease: '8s' }, async ({ data }) => {
    running += 1
    if (running === 20) killed ??= cluster.kill(0, 'SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, 50))
    running -= 1
    count.add(data)
  })
  // What the node had leased to an answer that it never sent comes back when that lease runs out.
  await eventually(() => count.handled.size === 200, patience)
  t.ok(killed !== undefined, 'twenty ran when it was killed')
  await rouse.close()
  t.same(count.twice, [], 'each was handled once')
  await expectEmpty(t, clientOf(t, cluster.urls), queue)
})

test('a node is restarted, by turns, under pushes and handlers', async (t) => {
  const cluster = await startCluster(t, 2)
  const rouse = clientOf(t, cluster.urls)
  const queue = unique()
  const count = tally()
  rouse
    .queue(queue)
    .work({ concurrency: 10, lease: '8s' }, async ({ data }: { data: number }) => count.add(data))
  let next = 0
  let pushing = true
  const stored: number[] = []
  const producers = Array.from({ length: 4 }, async () => {
    while (pushing) {
      const n = next++
      await rouse.queue(queue).push(n, { partition: `p${n % 40}` })
      stored.push(n)
    }
  })
  for (const [index, signal] of [
    [0, 'SIGTERM'],
    [1, 'SIGKILL'],
  ] as const) {
    const before = count.handled.size
    await eventually(() => count.handled.size > before + 100, patience)
    await cluster.kill(index, signal)
    await cluster.start(index)
  }
  pushing = false
  await Promise.all(producers)
  await eventually(() => stored.every((n) => count.handled.has(n)), patience)
  await rouse.close()
  t.equal(stored.length, next, 'no push failed')
  t.same(count.twice, [], 'each was handled once')
  await expectEmpty(t, clientOf(t, cluster.urls), queue)
})

test('the only node is away for a while', async (t) => {
  const cluster = await startCluster(t, 1)
  const rouse = clientOf(t, cluster.urls)
  const queue = unique()
  await pushNumbers(rouse, queue, 40)
  const count = tally()
  const errors: string[] = []
  let begun = 0
  let back: Promise<void> | undefined
  const comeBack = async (): Promise<void> => {
    await cluster.kill(0, 'SIGKILL')
    await cluster.start(0)
  }
  rouse
    .queue(queue)
    .work(
      { concurrency: 20, lease: '30s', onError: (error) => errors.push(String(error)) },
      async ({ data }) => {
        begun += 1
        if (begun === 20) back = comeBack()
        await eventually(() => back !== undefined, patience)
        count.add(data)
      },
    )
  await eventually(() => begun >= 20, patience)
  await back
  const { id } = await rouse.queue(queue).push(40)
  t.ok(id)
  await eventually(() => count.handled.size === 41, patience)
  await rouse.close()
  t.same(count.twice, [], `each was handled once; ${errors.length} errors were told`)
  await expectEmpty(t, clientOf(t, cluster.urls), queue)
})

test('stopping in mid-flight loses and doubles nothing', async (t) => {
  const cluster = await startCluster(t, 1)
  const rouse = clientOf(t, cluster.urls)
  const queue = unique()
  await rouse.queue(queue).configure({ leaseTime: 300 })
  await pushNumbers(rouse, queue, 1_000)
  const count = tally()
  const charged: unknown[] = []
  let stops = 0
  while (count.handled.size < 1_000) {
    const from = count.handled.size
    const worker = rouse
      .queue(queue)
      .work({ concurrency: 20, prefetch: 50, lease: '5s' }, async ({ data, attempt }) => {
        await new Promise((resolve) => setTimeout(resolve, 2))
        if (attempt > 1) charged.push(data)
        count.add(data)
      })
    await eventually(() => count.handled.size > from + 70 || count.handled.size === 1_000, {
      ...patience,
      intervalMs: 1,
    })
    await worker.stop()
    stops += 1
  }
  t.ok(stops > 5, `${stops} stops`)
  t.same(count.twice, [])
  t.same(charged, [], 'what was given back was not charged')
  await expectEmpty(t, rouse, queue)
})

test('a stop that has waited long enough aborts, and gives back at once', async (t) => {
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

test('an answer that crosses a stop is given back at once, uncharged', async (t) => {
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

test('a stop that finds the cluster out of reach keeps its timeout', async (t) => {
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
    `what could not be acknowledged is reported: ${errors.join(' | ')}`,
  )
})

/** How many pops wait at this node. */
async function waiting(url: string): Promise<number> {
  const stats = (await (await fetch(`${url}/stats`)).json()) as { waiting: { total: number } }
  return stats.waiting.total
}

/** Passes bytes on both ways, and answers only when it is told to while it holds them. */
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
    /** After one turn, in which what the client sends now arrives. */
    async release() {
      await new Promise((resolve) => setImmediate(resolve))
      holding = false
      for (const act of held.splice(0)) act()
      held = []
    },
  }
}

test('a slow node costs time, not messages', async (t) => {
  const cluster = await startCluster(t, 2)
  const rouse = clientOf(t, cluster.urls, { timeout: '500ms' })
  const queue = unique()
  await pushNumbers(rouse, queue, 100)
  const count = tally()
  // Every push and ack waits in PostgreSQL for this lock, longer than the client does.
  const { pool } = cluster.database
  const lock = await pool.connect()
  rouse
    .queue(queue)
    .work({ concurrency: 10, lease: '30s' }, async ({ data }: { data: number }) => count.add(data))
  await eventually(() => count.handled.size > 20, patience)
  await lock.query('begin; lock table rouse.leases, rouse.messages in exclusive mode')
  const pushed = rouse.queue(queue).push(100)
  pushed.catch(() => {})
  await eventually(async () => {
    const { rows } = await pool.query("select from pg_stat_activity where wait_event_type = 'Lock'")
    return rows.length > 0
  }, patience)
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  await lock.query('rollback')
  lock.release()
  await pushed
  await eventually(() => count.handled.size === 101, patience)
  await rouse.close()
  t.same(count.twice, [], 'each was handled once')
  await expectEmpty(t, clientOf(t, cluster.urls), queue)
})
