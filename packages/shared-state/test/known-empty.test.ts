// A group that is known to be empty: its new waiters need no first query.
import { test } from 'tap'
import { hint, idleNode, nodeFixture, orders, ordersKey } from './support/node-fixture.ts'

/** The consumer of an idle node got a message and returns. */
function returns(node: ReturnType<typeof nodeFixture>): void {
  node.manager.setWaiting(1, orders, 0)
  rejoins(node)
}

function rejoins(node: ReturnType<typeof nodeFixture>): void {
  node.manager.setWaiting(1, orders, 1)
  node.manager.requestGrant(1, ordersKey, { unlessEmpty: true })
}

test('a returning consumer of an empty group needs no query, and the next hint wakes it', async (t) => {
  const node = idleNode()
  returns(node)
  t.equal(node.grants.length, 1)
  t.equal(node.manager.getStats().counters.requestsSpared, 1)
  node.manager.notifyMessageAvailable(hint, { sidecarId: 2 })
  t.equal(node.lastGrant().source, 'ipc')
})

test('the group stays known as empty when a pop found everything that was hinted', async (t) => {
  const node = idleNode()
  node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
  node.manager.setWaiting(1, orders, 0)
  node.pops('messages', 1)
  const before = node.grants.length
  rejoins(node)
  t.equal(node.grants.length, before)
})

test('a waiter gets a query when a hint came while the group had no waiters', async (t) => {
  const node = idleNode()
  node.manager.setWaiting(1, orders, 0)
  node.manager.handleMessageAvailable(hint)
  rejoins(node)
  t.equal(node.lastGrant().source, 'request')
  t.equal(node.grants.length, 2)
})

test('an empty pop proves nothing when a hint came after its waiters had left', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.manager.setWaiting(1, orders, 0)
  node.manager.handleMessageAvailable(hint)
  node.pops('empty')
  rejoins(node)
  t.equal(node.grants.length, 2)
})

test('a waiter gets a query when any hint may have been lost', async (t) => {
  const events: Record<string, (node: ReturnType<typeof idleNode>) => void> = {
    'hints of a peer were lost': ({ manager }) => manager.notifyEverything('udp'),
    'an outcome is unknown': ({ manager }) => manager.announceEverything('outcome_unknown'),
    'a worker died': ({ manager }) => manager.unregisterSidecar(3),
    'a lasting fault began': ({ manager }) => manager.reportFault('peer_silent'),
  }
  for (const [title, happens] of Object.entries(events)) {
    const node = idleNode()
    node.manager.setWaiting(1, orders, 0)
    happens(node)
    rejoins(node)
    t.equal(node.grants.length, 2, title)
  }
})

test('an empty pop of aggressive mode is no proof in healthy mode', async (t) => {
  const node = nodeFixture({ aggressivePollDurationMs: 100, aggressiveExitThreshold: 1 })
  node.manager.reportFault('fetch_error')
  node.waits(1)
  node.pops('empty')
  node.clock.now += 200
  node.due()
  node.manager.fallbackResult([])
  t.equal(node.manager.getStats().mode.mode, 'healthy')
  returns(node)
  t.equal(node.grants.length, 2, 'the first healthy waiter makes a query')
  node.pops('empty')
  returns(node)
  t.equal(node.grants.length, 2, 'the next one does not')
})

test('a waiter of a group that some peer does not know gets a query', async (t) => {
  const node = nodeFixture({}, { interestChanged: () => {} })
  node.waits(1)
  node.pops('empty')
  returns(node)
  t.equal(node.grants.length, 2, 'not advertised yet')
  node.pops('empty')
  node.manager.interestEchoed(1)
  t.equal(node.grants.length, 3, 'hints sent before may have been missed')
  node.pops('empty')
  returns(node)
  t.equal(node.grants.length, 3, 'advertised and popped since')
  node.manager.interestEchoed(0)
  returns(node)
  t.equal(node.grants.length, 4, 'a peer joined that does not know the group')
})

test('an old proof is renewed, so that PostgreSQL still sees the consumer group in use', async (t) => {
  const node = idleNode({ emptyTrustedMs: 30_000 })
  node.clock.now += 30_001
  returns(node)
  t.equal(node.grants.length, 2)
})

test('a removed group starts with a query', async (t) => {
  const node = idleNode({ groupLingerMs: 50 })
  node.manager.setWaiting(1, orders, 0)
  node.tickAt(node.clock.now + 60)
  rejoins(node)
  t.equal(node.grants.length, 2)
})

test('a poll verifies within a second what only the numbers in hints show', async (t) => {
  const node = idleNode({ verifyAfterMs: 1_000 })
  node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
  node.manager.setWaiting(1, orders, 0)
  node.pops('messages', 1)
  rejoins(node)
  node.clock.now += 999
  t.same(node.due(), [])
  node.clock.now += 1
  t.same(node.due(), [ordersKey])
  node.manager.fallbackResult([])
  node.clock.now += 4_000
  t.same(node.due(), [], 'verified')
})

test('waiters that come and go do not postpone the fallback poll', async (t) => {
  const node = idleNode({ idleIntervalMs: 5_000 })
  for (let i = 0; i < 49; i += 1) {
    node.clock.now += 100
    returns(node)
  }
  t.same(node.due(), [])
  node.clock.now += 100
  returns(node)
  t.same(node.due(), [ordersKey])
})

test('a poll that a hint overlaps verifies what was counted before it', async (t) => {
  const node = nodeFixture({ verifyAfterMs: 1_000 })
  node.waits(1, orders, 3)
  node.pops('empty')
  const delivers = () => {
    node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
    node.pops('messages', 1)
  }
  delivers()
  node.clock.now += 1_000
  t.same(node.due(), [ordersKey])
  node.clock.now += 1
  delivers()
  node.clock.now += 1
  node.manager.fallbackResult([])
  t.same(node.due(), [], 'no second poll at once')
  node.clock.now += 997
  t.same(node.due(), [])
  node.clock.now += 1
  t.same(node.due(), [ordersKey], 'what was counted during the first poll')
})
