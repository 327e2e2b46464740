// When a node leaves aggressive mode: pops decide whether a poll has found messages.
import { test } from 'tap'
import { hint, idleNode, nodeFixture, ordersKey } from '../support/node-fixture.ts'

function aggressiveNode(settings: Parameters<typeof nodeFixture>[0] = {}) {
  const node = idleNode(settings)
  node.manager.reportFault('fetch_error')
  return node
}

/** Runs the clock until `end`, and calls `act` whenever a poll is due; returns the number of polls. */
function pollsUntil(node: ReturnType<typeof nodeFixture>, end: number, act: () => void): number {
  let checks = 0
  while (node.manager.nextWakeAt() <= end) {
    node.clock.now = Math.max(node.clock.now, node.manager.nextWakeAt())
    node.manager.tick()
    if (node.due().length === 0) continue
    checks += 1
    act()
  }
  node.clock.now = end
  return checks
}

test('work that no pop can get increases the backoff, and aggressive mode ends', async (t) => {
  const node = aggressiveNode()
  const checks = pollsUntil(node, 62_000, () => {
    node.manager.fallbackResult([ordersKey])
    node.pops('empty')
  })
  t.ok(checks < 80, `${checks} polls in a minute`)
  t.equal(node.manager.getStats().mode.mode, 'healthy')
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('work that a pop gets keeps the node aggressive', async (t) => {
  const node = aggressiveNode()
  pollsUntil(node, 120_000, () => {
    node.manager.fallbackResult([ordersKey])
    node.pops('messages', 1)
    node.pops('empty')
  })
  t.equal(node.manager.getStats().mode.mode, 'aggressive')
})

test('a node too busy to poll still leaves aggressive mode', async (t) => {
  const node = aggressiveNode()
  let checks = 0
  for (let now = 1_000; now < 67_000; now += 50) {
    node.clock.now = now
    node.manager.tick()
    if (node.manager.getStats().mode.mode === 'aggressive') checks += node.due().length
    node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
    node.pops('messages', 1)
    if (now === 60_000) t.equal(node.manager.getStats().mode.mode, 'aggressive')
  }
  t.equal(checks, 0)
  t.equal(node.manager.getStats().mode.mode, 'healthy')
})

test('a busy node does not leave aggressive mode at once: pops count as a poll only at intervals', async (t) => {
  const node = aggressiveNode({ aggressivePollDurationMs: 0 })
  const modeAt = (end: number) => {
    for (; node.clock.now < end; node.clock.now += 50) {
      node.manager.tick()
      if (node.manager.getStats().mode.mode === 'aggressive') t.same(node.due(), [])
      node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
      node.pops('messages', 1)
    }
    return node.manager.getStats().mode.mode
  }
  t.equal(modeAt(4_500), 'aggressive')
  t.equal(modeAt(7_000), 'healthy')
})

test('a poll of many groups counts as quiet once, however many pops are empty', async (t) => {
  const node = nodeFixture({ aggressivePollDurationMs: 0 })
  const groups = Array.from({ length: 6 }, (_, i) => ({ source: { queue: `q${i}` }, group: 'g' }))
  for (const group of groups) {
    node.waits(1, group)
    node.pops('empty')
  }
  node.manager.reportFault('fetch_error')
  const check = () => {
    node.clock.now += 1_000
    const keys = node.due()
    t.equal(keys.length, groups.length)
    const before = node.grants.length
    node.manager.fallbackResult(keys)
    for (const grant of node.grants.slice(before)) node.pops('empty', 0, grant)
    return node.manager.getStats().mode.mode
  }
  t.same(Array.from({ length: 5 }, check), [
    'aggressive',
    'aggressive',
    'aggressive',
    'aggressive',
    'healthy',
  ])
})
