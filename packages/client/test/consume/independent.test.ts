// Messages without a partition, and the order of those with one, as a new user meets them.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { gate } from '../support/gate.ts'

const { urls } = await sharedCluster()

test('six jobs of a second take about a second with concurrency 10', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  for (let n = 0; n < 6; n += 1) await queue.push({ n })
  const begunMs = performance.now()
  let done = 0
  const worker = queue.work({ concurrency: 10 }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    done += 1
  })
  await eventually(() => done === 6)
  const tookMs = performance.now() - begunMs
  await worker.stop()
  t.ok(tookMs < 2_000, `it took ${Math.round(tookMs)} ms`)
})

test('independent messages are handled together, and say so', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.pushMany(Array.from({ length: 6 }, (_, payload) => ({ payload })))
  const all = gate()
  const partitions = new Set<string | null>()
  let running = 0
  const worker = queue.work({ concurrency: 10 }, async ({ partition }) => {
    partitions.add(partition)
    running += 1
    if (running === 6) all.open()
    await all.opened
  })
  await all.opened
  await worker.stop()
  t.same([...partitions], [null])
})

test('a job that fails delays no other', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [600_000] })
  await queue.pushMany(['bad', 1, 2].map((payload) => ({ payload })))
  const seen: unknown[] = []
  const worker = queue.work({ concurrency: 1, onError: () => {} }, ({ data }) => {
    seen.push(data)
    if (data === 'bad') throw new Error('not now')
  })
  await eventually(() => seen.length === 3)
  await queue.pushMany([3, 4].map((payload) => ({ payload })))
  await eventually(() => seen.length === 5)
  await worker.stop()
  t.same(seen, ['bad', 1, 2, 3, 4])
})

test('with a partition, jobs stay in order and a failing one holds those behind it', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await queue.configure({ retryBackoffMs: [100] })
  const entries = [1, 2, 3].map((payload) => ({ payload, partition: 'customer-7' }))
  await queue.pushMany(entries)
  const seen: unknown[] = []
  let running = 0
  const worker = queue.work({ concurrency: 10, onError: () => {} }, async ({ data, attempt }) => {
    running += 1
    t.equal(running, 1)
    seen.push(`${data}.${attempt}`)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    if (data === 2 && attempt === 1) throw new Error('once')
  })
  await eventually(() => seen.length === 4)
  await worker.stop()
  t.same(seen, ['1.1', '2.1', '2.2', '3.1'])
})

test('a thousand messages of the partition Default stay in order with ten consumers', async (t) => {
  const rouse = clientOf(t, urls)
  const name = unique()
  await rouse.queue(name).configure({ leaseTime: 60 })
  const numbers = Array.from({ length: 1_000 }, (_, n) => n)
  await Promise.all(numbers.map((n) => rouse.queue(name).push(n, { partition: 'Default' })))
  const seen: unknown[] = []
  const workers = Array.from({ length: 10 }, () =>
    clientOf(t, urls)
      .queue(name)
      .work({ concurrency: 10 }, async ({ data }) => {
        seen.push(data)
        await new Promise((resolve) => setImmediate(resolve))
      }),
  )
  await eventually(() => seen.length >= 1_000, { timeoutMs: 60_000 })
  await Promise.all(workers.map((worker) => worker.stop()))
  t.same(seen, numbers)
})
