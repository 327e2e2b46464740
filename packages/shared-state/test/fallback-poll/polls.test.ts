import { test } from 'tap'
import { hint, idleNode, nodeFixture, ordersKey } from '../support/node-fixture.ts'

/** Returns the number of queries that a node makes until `end` if each finds nothing. */
function queriesUntil(node: ReturnType<typeof nodeFixture>, end: number): number {
  let queries = 0
  for (;;) {
    const at = node.manager.nextWakeAt()
    if (at > end) return queries
    node.clock.now = Math.max(node.clock.now, at)
    node.manager.tick()
    if (node.due().length === 0) continue
    queries += 1
    node.manager.fallbackResult([])
  }
}

test('a healthy node polls every idle interval', async (t) => {
  const node = idleNode()
  t.equal(node.manager.nextWakeAt(), 6_000)
  node.clock.now = 5_999
  t.same(node.due(), [])
  node.clock.now = 6_000
  t.same(node.due(), [ordersKey])
  t.same(node.due(), [], 'one query at a time')
  t.equal(node.manager.nextWakeAt(), Number.POSITIVE_INFINITY)
  node.clock.now = 6_010
  node.manager.fallbackResult([])
  t.equal(node.manager.nextWakeAt(), 11_010)
  t.equal(node.group()?.consecutiveEmpty, 2)
})

test('one query covers all groups past half of their interval', async (t) => {
  const node = nodeFixture()
  for (const [index, queue] of ['a', 'b', 'c'].entries()) {
    node.clock.now = 1_000 + index * 2_000
    node.waits(1, { source: { queue }, group: 'g' })
    node.pops('empty')
  }
  node.clock.now = 6_000
  t.same(node.due(), ['a/*/g', 'b/*/g'])
  node.manager.fallbackResult([])
  t.equal(node.manager.nextWakeAt(), 10_000)
  node.clock.now = 10_000
  t.same(node.due(), ['c/*/g', 'a/*/g', 'b/*/g'])
})

test('an aggressive node polls at the backoff interval', async (t) => {
  const node = idleNode()
  node.manager.reportFault('listener_lost')
  const times: number[] = []
  while (times.length < 7) {
    const at = node.manager.nextWakeAt()
    if (at > node.clock.now) node.clock.now = at
    if (node.due().length > 0) {
      times.push(node.clock.now)
      node.manager.fallbackResult([])
    }
  }
  t.same(
    times.map((at, i) => at - (times[i - 1] ?? 1_000)),
    [100, 100, 200, 400, 800, 1_000, 1_000],
  )
})

test('work that a poll finds is granted', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.due()
  node.manager.fallbackResult([ordersKey, 'never/*/asked'])
  t.match(node.lastGrant(), { grantId: 2, source: 'fallback' })
  node.pops('messages', 1)
  t.match(node.manager.getStats(), {
    counters: { unannounced: 1, fallbackChecks: 1 },
    mode: { mode: 'healthy' },
  })
})

test('a failed pop increases the backoff, even if a hint arrived meanwhile', async (t) => {
  const node = idleNode()
  node.manager.handleMessageAvailable(hint)
  node.take()
  node.manager.handleMessageAvailable(hint)
  node.pops('error')
  t.equal(node.group()?.consecutiveEmpty, 1)
})

test('a group in flight is not polled', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.clock.now = 20_000
  t.same(node.due(), [])
})

test('a failed query makes the node aggressive and is repeated', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.due()
  node.manager.fallbackFailed()
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['fetch_error'] })
  node.clock.now = 6_100
  t.same(node.due(), [ordersKey])
})

test('a result without a running query changes nothing', async (t) => {
  const node = idleNode()
  node.manager.fallbackResult([ordersKey])
  t.equal(node.grants.length, 1)
})

test('groups that do not fit into one query follow at once in the next', async (t) => {
  const node = nodeFixture({ fallbackGroupsMax: 2 })
  for (const queue of ['a', 'b', 'c']) {
    node.waits(1, { source: { queue }, group: 'g' })
    node.pops('empty')
  }
  node.clock.now = 6_000
  t.same(node.due(), ['a/*/g', 'b/*/g'])
  node.manager.fallbackResult([])
  t.ok(node.manager.nextWakeAt() <= 6_000)
  t.same(node.due(), ['c/*/g'])
})

test('a group that is hinted while a query runs is polled again', async (t) => {
  const node = idleNode({ wakeAllGroupsMax: 0 })
  node.clock.now = 6_000
  node.due()
  node.clock.now = 6_001
  node.manager.notifyEverything('udp')
  node.clock.now = 6_002
  node.manager.fallbackResult([])
  t.same(node.due(), [ordersKey])
})

test('the number of queries does not grow with the number of groups', async (t) => {
  const node = nodeFixture()
  for (let i = 0; i < 500; i += 1) {
    node.clock.now += 7
    node.waits(1, { source: { queue: `q${i}` }, group: 'g' })
    node.pops('empty')
  }
  const queries = queriesUntil(node, node.clock.now + 60_000)
  t.ok(queries <= 24, `${queries} in 60 s`)
})

for (const groups of [1, 50, 500]) {
  test(`the number of queries does not grow in aggressive mode with ${groups} groups`, async (t) => {
    const node = nodeFixture()
    node.manager.reportFault('listener_lost')
    const begin = node.clock.now
    for (let i = 0; i < groups; i += 1) {
      node.clock.now = begin + Math.round((i * 3_500) / groups)
      node.waits(1, { source: { queue: `q${i}` }, group: 'g' })
      node.pops('empty')
    }
    const queries = queriesUntil(node, node.clock.now + 60_000)
    // The intervals are the same as for a single group: 100, 100, 200, 400, 800 ms, then a second each.
    t.ok(queries >= 60 && queries <= 70, `${queries} in 60 s`)
  })
}

test('without waiters nothing is polled and aggressive mode ends by time', async (t) => {
  const node = nodeFixture()
  node.manager.reportFault('fetch_error')
  t.equal(node.manager.nextWakeAt(), 61_000)
  t.same(node.due(), [])
  t.equal(node.manager.getStats().mode.mode, 'aggressive')
  node.clock.now = 61_000
  t.same(node.due(), [])
  t.equal(node.manager.getStats().mode.mode, 'healthy')
  t.equal(node.manager.nextWakeAt(), Number.POSITIVE_INFINITY)
})
