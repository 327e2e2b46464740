// Workers that are silent, slow, or gone: grants that nobody takes, pops that never end, deaths.
import { test } from 'tap'
import { sharedStateDefaults } from '../src/index.ts'
import { hint, nodeFixture, orders } from './support/node-fixture.ts'

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
    node.waits(2, { queue, group: 'g' })
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
