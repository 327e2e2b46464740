// The polls and pops of a wait group until every peer knows that it has waiters.
import { test } from 'tap'
import { sharedStateDefaults } from '../src/index.ts'
import { nodeFixture, orders, ordersKey } from './support/node-fixture.ts'

test('a group that peers do not know yet polls at its backoff interval, then pops once more', async (t) => {
  const versions: number[] = []
  const node = nodeFixture({}, { interestChanged: (version) => versions.push(version) })
  node.waits(1)
  node.pops('empty')
  t.same(versions, [1])
  t.same(node.manager.interests(), { version: 1, groups: [orders] })
  t.equal(node.manager.nextWakeAt(), 1_100)
  node.manager.interestEchoed(1)
  t.match(node.lastGrant(), { grantId: 2, source: 'request' })
  node.pops('empty')
  node.clock.now = 1_100
  t.same(node.due(), [])
  t.equal(node.manager.nextWakeAt(), 6_000)
})

test('a group that all peers know before its first pop needs no second one', async (t) => {
  const node = nodeFixture(
    {},
    { interestChanged: (version) => node.manager.interestEchoed(version) },
  )
  node.waits(1)
  node.pops('empty')
  t.equal(node.grants.length, 1)
})

test('a late second pop does not count as a lost wake-up', async (t) => {
  const node = nodeFixture({}, { interestChanged: () => {} })
  node.waits(1)
  node.manager.interestEchoed(1)
  node.clock.now = 1_100
  node.manager.tick()
  node.pops('empty')
  t.match(node.lastGrant(), { grantId: 2, source: 'request' })
  node.clock.now = 1_200
  node.manager.tick()
  t.match(node.manager.getStats(), {
    counters: { deliveryTimeouts: 2 },
    mode: { mode: 'healthy' },
  })
})

test('every group polls at its backoff interval until a new peer knows it', async (t) => {
  const node = nodeFixture(
    {},
    { interestChanged: (version) => node.manager.interestEchoed(version) },
  )
  node.waits(1)
  node.pops('empty')
  node.manager.interestEchoed(0)
  node.clock.now = 1_100
  t.same(node.due(), [ordersKey])
  node.manager.fallbackResult([])
  node.manager.interestEchoed(1)
  t.match(node.lastGrant(), { grantId: 2, source: 'request' })
})

test('with very many groups, a peer that joins causes one query instead of a pop for each', async (t) => {
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
  t.same(node.due(), ['a/*/g', 'b/*/g', 'c/*/g'])
})

test('groups poll at their backoff interval until every peer knows them', async (t) => {
  const node = nodeFixture({}, { interestChanged: () => {} })
  node.waits(1)
  node.pops('empty')
  node.manager.interestEchoed(node.manager.interests().version)
  node.pops('empty')
  node.clock.now = 2_000
  t.same(node.due(), [], 'every peer knows it')
  t.equal(node.manager.nextWakeAt(), 1_000 + sharedStateDefaults.idleIntervalMs)
  node.manager.interestEchoed(0)
  t.same(node.due(), [ordersKey])
})
