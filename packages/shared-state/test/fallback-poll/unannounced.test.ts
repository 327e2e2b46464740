// Which messages count as unannounced: those that a fallback poll finds before any hint. Only these keep a
// node in aggressive mode.
import { test } from 'tap'
import { hint, idleNode, ordersKey } from '../support/node-fixture.ts'

test('work is announced if a hint arrives before the poll returns', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.due()
  node.clock.now = 6_001
  node.manager.handleMessageAvailable(hint)
  node.manager.fallbackResult([ordersKey])
  t.equal(node.manager.getStats().counters.unannounced, 0)
  node.pops('empty')
  t.equal(node.grants.length, 3, 'the group is still popped once more')
})

test('work is announced if its hint arrives and is popped during the poll', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.due()
  node.clock.now = 6_001
  node.manager.handleMessageAvailable(hint)
  node.pops('empty')
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('work is announced if an earlier pop for it failed', async (t) => {
  const node = idleNode()
  node.manager.handleMessageAvailable(hint)
  node.pops('error')
  node.clock.now = 6_000
  node.due()
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('work is announced if only a wake-up of every group covered it', async (t) => {
  const node = idleNode({ wakeAllGroupsMax: 0 })
  node.manager.notifyEverything('udp')
  node.clock.now = 1_010
  t.same(node.due(), [ordersKey])
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})

test('work is unannounced if it arrives after a poll that found nothing', async (t) => {
  const node = idleNode({ wakeAllGroupsMax: 0 })
  node.manager.notifyEverything('udp')
  node.clock.now = 1_010
  node.due()
  node.manager.fallbackResult([])
  node.clock.now = 7_000
  node.due()
  node.manager.fallbackResult([ordersKey])
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 1)
})

test('a poll that began before a waiter arrived does not end the wake chain of its pop', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.due()
  node.clock.now = 6_001
  node.waits(2)
  node.manager.fallbackResult([])
  node.pops('messages', 1)
  t.match(node.lastGrant(), { grantId: 3, source: 'chain' })
})

test('work is announced if its hint arrives during the pop that the poll caused', async (t) => {
  const node = idleNode()
  node.clock.now = 6_000
  node.due()
  node.manager.fallbackResult([ordersKey])
  node.take()
  node.manager.handleMessageAvailable(hint)
  node.pops('messages', 1)
  t.equal(node.manager.getStats().counters.unannounced, 0)
})
