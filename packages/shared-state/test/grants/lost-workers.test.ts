// Workers that are silent, slow or dead: grants that they do not take, and pops that never end.
import { test } from 'tap'
import { sharedStateDefaults } from '../../src/index.ts'
import { hint, idleNode, nodeFixture, orders } from '../support/node-fixture.ts'

test('a grant that is not taken within 100 ms goes to the next worker', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(1, orders, 1)
  node.manager.setWaiting(2, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.tickAt(1_099)
  t.equal(node.grants.length, 1)
  node.tickAt(1_100)
  t.match(node.lastGrant(), { sidecarId: 2, source: 'udp' })
  t.match(node.manager.getStats(), {
    counters: { deliveryTimeouts: 1 },
    mode: { mode: 'aggressive', why: ['grant_untaken'] },
  })
})

test('an untaken first query goes to the next worker but does not count as a lost wake-up', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(2, orders, 1)
  node.waits(1)
  node.tickAt(1_100)
  t.match(node.lastGrant(), { sidecarId: 2, source: 'request' })
  node.tickAt(1_200)
  t.match(node.manager.getStats(), {
    counters: { deliveryTimeouts: 2 },
    mode: { mode: 'healthy', why: [] },
  })
})

test('a hint that arrives during an untaken first query makes it a lost wake-up', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.manager.handleMessageAvailable(hint)
  node.tickAt(1_100)
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['grant_untaken'] })
})

test('a worker that did not take a grant is passed over until it is heard', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 2)
  node.manager.handleMessageAvailable(hint)
  node.tickAt(1_100)
  node.pops('messages')
  t.match(node.lastGrant(), { sidecarId: 2, source: 'chain' })
  node.manager.setWaiting(1, orders, 2)
  node.pops('messages')
  t.match(node.lastGrant(), { sidecarId: 1 })
})

test('an untaken grant stays with its worker until another worker has waiters', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.tickAt(1_100)
  t.equal(node.grants.length, 1)
  t.ok(node.group()?.inFlight)
  node.waits(2)
  t.match(node.lastGrant(), { sidecarId: 2, grantId: 2 })
})

test('a silent worker that is heard again takes over an untaken grant of another', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 1)
  node.manager.handleMessageAvailable(hint)
  const first = node.lastGrant()
  node.tickAt(1_100)
  node.tickAt(1_200)
  t.equal(node.grants.length, 2, 'both are silent, so the second keeps it')
  t.notOk(node.take(first))
  t.match(node.lastGrant(), { sidecarId: 1, grantId: 3, source: 'udp' })
})

test('a pop that never ends is abandoned', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.tickAt(1_000 + sharedStateDefaults.popDurationMaxMs)
  t.notOk(node.group()?.inFlight)
  t.match(node.manager.getStats(), { counters: { popTimeouts: 1 }, mode: { why: ['fetch_error'] } })
})

test('the death of a worker frees its locks and wakes the others', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.manager.setWaiting(2, orders, 1)
  node.manager.unregisterSidecar(1)
  t.match(node.lastGrant(), { sidecarId: 2, source: 'ipc' })
  t.match(node.manager.getStats(), { local_sidecars: 2, mode: { why: ['sidecar_lost'] } })
  t.notOk(node.manager.setWaiting(1, orders, 1), 'its late messages are ignored')
})

test('a worker that leaves cleanly does not make the node aggressive', async (t) => {
  const node = nodeFixture()
  node.manager.unregisterSidecar(1, 'left')
  node.manager.unregisterSidecar(1, 'left')
  t.match(node.manager.getStats(), { local_sidecars: 2, mode: { mode: 'healthy' } })
})

test('with very many groups, the death of a worker causes one query instead of a pop for each', async (t) => {
  const node = nodeFixture({ wakeAllGroupsMax: 2 })
  for (const queue of ['a', 'b', 'c']) {
    node.waits(2, { source: { queue }, group: 'g' })
    node.pops('empty')
  }
  const before = node.grants.length
  node.manager.unregisterSidecar(1)
  t.equal(node.grants.length, before)
  t.same(node.due(), ['a/*/g', 'b/*/g', 'c/*/g'])
})

test('peers also poll for messages that a dying worker may have committed', async (t) => {
  const node = nodeFixture()
  node.waits(2)
  node.pops('empty')
  node.manager.unregisterSidecar(3, 'left')
  t.same(node.broadcasts, [], 'a worker that left cleanly has sent all its hints')
  node.manager.unregisterSidecar(1, 'died')
  t.same(node.broadcasts, ['everything'])
})

test('a write with an unknown outcome makes peers poll and this node aggressive', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('empty')
  node.manager.announceEverything('outcome_unknown')
  t.same(node.broadcasts, ['everything'])
  t.match(node.lastGrant(), { source: 'ipc' })
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['outcome_unknown'] })
})

const { sidecarSilentMs } = sharedStateDefaults

test('a worker that stops during a pop does not block the others', async (t) => {
  const node = idleNode()
  node.manager.setWaiting(2, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.take()
  const stopped = node.lastGrant()
  node.tickAt(1_000 + sidecarSilentMs - 1)
  t.equal(node.lastGrant(), stopped)
  node.tickAt(1_000 + sidecarSilentMs)
  t.match(node.lastGrant(), { sidecarId: 2, source: 'udp' })
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['grant_untaken'] })
  t.notOk(node.pops('messages', 1, stopped), 'its messages after it resumes change nothing')
  node.pops('messages', 1)
  t.notOk(node.group()?.inFlight)
})

test('a slow pop keeps its grant while its worker is alive', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(1, orders, 1)
  node.manager.setWaiting(2, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.take()
  for (let second = 1; second <= 8; second += 1) {
    node.tickAt(1_000 + second * 1_000)
    node.manager.heardSidecar(1)
  }
  t.equal(node.grants.length, 1)
  t.equal(node.manager.getStats().mode.mode, 'healthy')
})

test('a waiter that arrives while a stopped worker holds the lock gets the lock', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.tickAt(1_000 + sidecarSilentMs)
  t.ok(node.group()?.inFlight, 'no other worker has waiters')
  node.waits(2)
  t.match(node.lastGrant(), { sidecarId: 2, source: 'request' })
})

test('after a pop that never ended the next grant goes to another worker', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.take()
  const lastMs = 1_000 + sharedStateDefaults.popDurationMaxMs
  for (let now = 2_000; now < lastMs; now += 1_000) {
    node.clock.now = now
    node.manager.heardSidecar(1)
    node.manager.tick()
  }
  node.tickAt(lastMs)
  t.notOk(node.group()?.inFlight)
  node.manager.setWaiting(3, orders, 1)
  for (const _ of [2, 3, 2]) {
    node.manager.handleMessageAvailable(hint)
    t.not(node.lastGrant().sidecarId, 1, 'not to the abandoned worker')
    node.pops('empty')
  }
})

test('the grant of a worker that leaves goes to another', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.take()
  node.manager.unregisterSidecar(1, 'left')
  t.match(node.lastGrant(), { sidecarId: 2, source: 'ipc' })
})

test('with very many groups, a group with a pop in flight is popped once more', async (t) => {
  const node = nodeFixture({ wakeAllGroupsMax: 2 })
  for (const queue of ['a', 'b', 'c']) node.waits(2, { source: { queue }, group: 'g' })
  const last = node.lastGrant()
  node.take(last)
  node.manager.notifyEverything('udp')
  node.pops('empty', 0, last)
  t.match(node.lastGrant(), { key: 'c/*/g', source: 'udp' })
})
