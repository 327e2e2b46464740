// When a node trusts hints again: by what its checks find in truth, not by what they take for work.
import { test } from 'tap'
import { hint, nodeFixture, ordersKey } from './support/node-fixture.ts'

function aggressiveNode() {
  const node = nodeFixture()
  node.waits(1)
  node.pops('empty')
  node.manager.reportFault('fetch_error')
  return node
}

/** Aggressive for a while, with a check whenever one is due; answers how many there were. */
function checksUntil(node: ReturnType<typeof nodeFixture>, end: number, act: () => void): number {
  let checks = 0
  while (node.manager.nextWakeAt() <= end) {
    node.clock.now = Math.max(node.clock.now, node.manager.nextWakeAt())
    node.manager.tick()
    if (node.manager.dueForFallback().length === 0) continue
    checks += 1
    act()
  }
  node.clock.now = end
  return checks
}

test('work that no pop gets is no news: the ladder climbs, and aggressive mode ends', async (t) => {
  const node = aggressiveNode()
  const checks = checksUntil(node, 62_000, () => {
    node.manager.fallbackResult([ordersKey])
    node.pops('empty')
  })
  t.ok(checks < 80, `${checks} checks in a minute`)
  t.equal(node.manager.getStats().mode.mode, 'healthy')
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('work that a pop does get keeps a node aggressive', async (t) => {
  const node = aggressiveNode()
  checksUntil(node, 120_000, () => {
    node.manager.fallbackResult([ordersKey])
    node.pops('messages', 1)
    node.pops('empty')
  })
  t.equal(node.manager.getStats().mode.mode, 'aggressive')
})

test('a node too busy for any check leaves aggressive mode all the same', async (t) => {
  const node = aggressiveNode()
  let checks = 0
  for (let now = 1_000; now < 67_000; now += 50) {
    node.clock.now = now
    node.manager.tick()
    checks += node.manager.dueForFallback().length
    node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
    node.pops('messages', 1)
    if (now === 60_000) t.equal(node.manager.getStats().mode.mode, 'aggressive')
  }
  t.equal(checks, 0)
  t.equal(node.manager.getStats().mode.mode, 'healthy')
})
