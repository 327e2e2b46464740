import { test } from 'tap'
import { LatencyHistogram } from '../src/stats.ts'
import { hint, nodeFixture } from './support/node-fixture.ts'

test('wake-ups are counted by source, separately from first queries', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('empty')
  for (let i = 0; i < 2; i += 1) {
    node.manager.handleMessageAvailable(hint)
    node.pops('empty')
  }
  t.match(node.manager.getStats(), { wakes: { udp: 2, chain: 0 }, counters: { requests: 1 } })
})

test('pops that find nothing are counted by what caused them', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('empty')
  node.manager.handleMessageAvailable(hint)
  node.pops('messages', 1)
  node.manager.notifyMessageAvailable(hint, { sidecarId: 2 })
  node.pops('empty')
  t.match(node.manager.getStats().counters.emptyPops, { request: 1, udp: 0, ipc: 1, local: 0 })
})

test('a histogram counts each duration in every bucket that includes it', async (t) => {
  const histogram = new LatencyHistogram()
  for (const ms of [0.4, 1, 1.1, 20_000]) histogram.record(ms)
  const { count, sumMs, maxMs, buckets } = histogram.stats()
  t.same([count, sumMs, maxMs], [4, 20_002.5, 20_000])
  t.same(buckets.slice(0, 2), [
    { leMs: 1, count: 2 },
    { leMs: 2, count: 3 },
  ])
  t.same(buckets.slice(-2), [
    { leMs: 10_000, count: 3 },
    { leMs: null, count: 4 },
  ])
})
