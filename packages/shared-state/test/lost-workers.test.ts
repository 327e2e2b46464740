// Workers that are silent, slow, or gone: grants that nobody takes, pops that never end, deaths.
import { test } from 'tap'
import { sharedStateDefaults } from '../src/index.ts'
import { hint, nodeFixture, orders, ordersKey } from './support/node-fixture.ts'

test('a grant that nobody takes within 100 ms goes to the next worker', async (t) => {
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

test('a first query that nobody takes goes on, too, but is no lost wake', async (t) => {
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

test('a hint that met an untaken first query makes it a lost wake', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.manager.handleMessageAvailable(hint)
  node.tickAt(1_100)
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['grant_untaken'] })
})

test('a worker that let a grant lie is passed over until it is heard', async (t) => {
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

test('an untaken grant stands where nobody else waits, until somebody does', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.tickAt(1_100)
  t.equal(node.grants.length, 1)
  t.ok(node.group()?.inFlight)
  node.waits(2)
  t.match(node.lastGrant(), { sidecarId: 2, grantId: 2 })
})

test('a silent worker that is heard again takes over what lies with another', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 1)
  node.manager.handleMessageAvailable(hint)
  const first = node.lastGrant()
  node.tickAt(1_100)
  node.tickAt(1_200)
  t.equal(node.grants.length, 2, 'both are silent, so it lies with the second')
  t.notOk(node.take(first))
  t.match(node.lastGrant(), { sidecarId: 1, grantId: 3, source: 'udp' })
})

test('a pop that never ends is given up', async (t) => {
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
  t.notOk(node.manager.setWaiting(1, orders, 1), 'what it sent before is passed over')
})

test('a worker that leaves in good order is no reason to distrust hints', async (t) => {
  const node = nodeFixture()
  node.manager.unregisterSidecar(1, 'left')
  node.manager.unregisterSidecar(1, 'left')
  t.match(node.manager.getStats(), { local_sidecars: 2, mode: { mode: 'healthy' } })
})

test('with very many groups, a death is one query and not a pop for each', async (t) => {
  const node = nodeFixture({ wakeAllGroupsMax: 2 })
  for (const queue of ['a', 'b', 'c']) {
    node.waits(2, { source: { queue }, group: 'g' })
    node.pops('empty')
  }
  const before = node.grants.length
  node.manager.unregisterSidecar(1)
  t.equal(node.grants.length, before)
  t.same(node.manager.dueForFallback(), ['a/*/g', 'b/*/g', 'c/*/g'])
})

test('what a worker may have committed when it died, peers are to look for as well', async (t) => {
  const node = nodeFixture()
  node.waits(2)
  node.pops('empty')
  node.manager.unregisterSidecar(3, 'left')
  t.same(node.broadcasts, [], 'one that left has told of everything')
  node.manager.unregisterSidecar(1, 'died')
  t.same(node.broadcasts, ['everything'])
})

test('so are they for a write whose outcome is unknown, and we look for longer', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('empty')
  node.manager.announceEverything('outcome_unknown')
  t.same(node.broadcasts, ['everything'])
  t.match(node.lastGrant(), { source: 'ipc' })
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['outcome_unknown'] })
})

const { sidecarSilentMs } = sharedStateDefaults

test('a worker that stops in the middle of a pop does not keep the others from theirs', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(1, orders, 1)
  node.manager.setWaiting(2, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.take()
  const stopped = node.lastGrant()
  node.tickAt(1_000 + sidecarSilentMs - 1)
  t.equal(node.grants.length, 1)
  node.tickAt(1_000 + sidecarSilentMs)
  t.match(node.lastGrant(), { sidecarId: 2, source: 'udp' })
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['grant_untaken'] })
  t.notOk(node.pops('messages', 1, stopped), 'what it says when it goes on changes nothing')
  node.pops('messages', 1)
  t.notOk(node.group()?.inFlight)
})

test('a pop that takes long is waited for while its worker lives', async (t) => {
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

test('a waiter that comes while a stopped worker holds the lock gets it', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.tickAt(1_000 + sidecarSilentMs)
  t.ok(node.group()?.inFlight, 'nobody else waits')
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
    t.not(node.lastGrant().sidecarId, 1, 'not to the one that was given up')
    node.pops('empty')
  }
})

test('a worker that leaves with a grant in hand leaves it to another', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.take()
  node.manager.unregisterSidecar(1, 'left')
  t.match(node.lastGrant(), { sidecarId: 2, source: 'ipc' })
})

test('with very many groups, one whose pop is under way is popped once more', async (t) => {
  const node = nodeFixture({ wakeAllGroupsMax: 2 })
  for (const queue of ['a', 'b', 'c']) node.waits(2, { source: { queue }, group: 'g' })
  const last = node.lastGrant()
  node.take(last)
  node.manager.notifyEverything('udp')
  node.pops('empty', 0, last)
  t.match(node.lastGrant(), { key: 'c/*/g', source: 'udp' })
})

test('a peer that joins is one query about very many groups, not a pop for each', async (t) => {
  const node = nodeFixture({ wakeAllGroupsMax: 2 }, { interestChanged: () => {} })
  for (const queue of ['a', 'b', 'c']) {
    node.waits(2, { source: { queue }, group: 'g' })
    node.pops('empty')
  }
  const { version } = node.manager.interests()
  node.manager.interestEchoed(version)
  const before = node.grants.length
  node.manager.interestEchoed(0)
  node.manager.interestEchoed(version)
  t.equal(node.grants.length, before)
  t.same(node.manager.dueForFallback(), ['a/*/g', 'b/*/g', 'c/*/g'])
})

test('while a peer does not know yet what is waited for, groups are on their ladder', async (t) => {
  const node = nodeFixture({}, { interestChanged: () => {} })
  node.waits(1)
  node.pops('empty')
  node.manager.interestEchoed(node.manager.interests().version)
  node.pops('empty')
  node.clock.now = 2_000
  t.same(node.manager.dueForFallback(), [], 'it is known to all')
  t.equal(node.manager.nextWakeAt(), 1_000 + sharedStateDefaults.idleIntervalMs)
  node.manager.interestEchoed(0)
  t.same(node.manager.dueForFallback(), [ordersKey])
})
