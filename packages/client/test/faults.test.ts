// Nodes die, stop and return while handlers run. No message may be lost, or handled twice while its lease is
// valid.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import type { Rouse } from '../src/index.ts'
import { clientOf, startCluster, unique } from './support/cluster.ts'

const patience = { timeoutMs: 60_000 }

/** Counts how often each message is handled. */
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

test('killing a node while twenty handlers run loses nothing', async (t) => {
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
  // If the node never sent the response of a pop, its messages are redelivered when the lease expires.
  await eventually(() => count.handled.size === 200, patience)
  t.ok(killed !== undefined, 'twenty ran when it was killed')
  await rouse.close()
  t.same(count.twice, [], 'each was handled once')
  await expectEmpty(t, clientOf(t, cluster.urls), queue)
})

test('restarting nodes in turn under load loses nothing', async (t) => {
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

test('pushes and handlers survive an outage of the only node', async (t) => {
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
  t.same(count.twice, [], `each was handled once; ${errors.length} errors were reported`)
  await expectEmpty(t, clientOf(t, cluster.urls), queue)
})

test('stopping under load loses and duplicates nothing', async (t) => {
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
  t.same(charged, [], 'released messages are not charged')
  await expectEmpty(t, rouse, queue)
})

test('a slow node costs time, not messages', async (t) => {
  const cluster = await startCluster(t, 2)
  const rouse = clientOf(t, cluster.urls, { timeout: '500ms' })
  const queue = unique()
  await pushNumbers(rouse, queue, 100)
  const count = tally()
  // Every push and ack waits in PostgreSQL for this lock, for longer than the client's timeout.
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
