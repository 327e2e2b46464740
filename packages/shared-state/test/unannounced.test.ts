// Which work a fallback check finds that no hint had told of: only that keeps a node aggressive.
import { test } from 'tap'
import { hint, idleNode, ordersKey } from './support/node-fixture.ts'

test('work that a hint told of meanwhile was announced', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.manager.dueForFallback()
  node.clock.now = 6_001
  node.manager.handleMessageAvailable(hint)
  node.manager.fallbackResult([ordersKey])
  t.equal(node.manager.getStats().counters.unannounced, 0)
  node.pops('empty')
  t.equal(node.grants.length, 3, 'and still it is looked for once more')
})

test('so was work whose hint came, and was looked for, while a check ran', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.manager.dueForFallback()
  node.clock.now = 6_001
  node.manager.handleMessageAvailable(hint)
  node.pops('empty')
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('and work whose pop failed before', async (t) => {
  const node = idleNode()
  node.manager.handleMessageAvailable(hint)
  node.pops('error')
  node.clock.now = 6_000
  node.manager.dueForFallback()
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('and work of which only "anything may have happened" told', async (t) => {
  const node = idleNode({ wakeAllGroupsMax: 0 })
  node.manager.notifyEverything('udp')
  node.clock.now = 1_010
  t.same(node.manager.dueForFallback(), [ordersKey])
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('but not what comes after a check that found nothing of it', async (t) => {
  const node = idleNode({ wakeAllGroupsMax: 0 })
  node.manager.notifyEverything('udp')
  node.clock.now = 1_010
  node.manager.dueForFallback()
  node.manager.fallbackResult([])
  node.clock.now = 7_000
  node.manager.dueForFallback()
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 1)
})

test('a check that began before a waiter came does not end the wake chain of its pop', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.manager.dueForFallback()
  node.clock.now = 6_001
  node.waits(2)
  node.manager.fallbackResult([])
  node.pops('messages', 1)
  t.match(node.lastGrant(), { grantId: 3, source: 'chain' })
})

test('work whose hint comes while a check pops for it was announced', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.manager.dueForFallback()
  node.manager.fallbackResult([ordersKey])
  node.take()
  node.manager.handleMessageAvailable(hint)
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})
