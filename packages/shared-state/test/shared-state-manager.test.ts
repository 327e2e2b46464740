import { test } from 'tap'
import { groupKey, sharedStateDefaults } from '../src/index.ts'
import { hint, idleNode, nodeFixture, orders, ordersKey } from './support/node-fixture.ts'

test('a new waiter queries first, and waits if it finds nothing', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  t.match(node.grants, [{ sidecarId: 1, key: 'orders/*/g', grantId: 1, source: 'request' }])
  t.ok(node.pops('empty'))
  t.equal(node.grants.length, 1)
})

test('a push wakes exactly one worker', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2, 3]) node.waits(id)
  while (node.group()?.inFlight === true) node.pops('empty')
  const before = node.grants.length
  node.manager.notifyMessageAvailable(hint, { sidecarId: 3 })
  t.equal(node.grants.length, before + 1)
  t.same(node.broadcasts, [hint])
})

test('the wake chain goes from worker to worker and ends at the first empty pop', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2, 3]) node.manager.setWaiting(id, orders, 2)
  node.manager.handleMessageAvailable(hint)
  for (const outcome of ['messages', 'messages', 'messages', 'messages', 'empty'] as const) {
    node.pops(outcome)
  }
  t.same(
    node.grants.map(({ sidecarId }) => sidecarId),
    [1, 2, 3, 1, 2],
  )
  t.same(
    node.grants.map(({ source }) => source),
    ['udp', 'chain', 'chain', 'chain', 'chain'],
  )
})

test('the chain ends when no waiters are left', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.manager.setWaiting(1, orders, 0)
  node.pops('messages')
  t.equal(node.grants.length, 1)
  t.equal(node.group()?.inFlight, false)
})

test('a hint that arrives during a pop causes another pop', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.manager.handleMessageAvailable(hint)
  node.manager.handleMessageAvailable(hint)
  t.equal(node.grants.length, 1)
  node.pops('empty')
  t.match(node.grants.slice(1), [{ sidecarId: 1, source: 'udp' }])
  node.pops('empty')
  t.equal(node.grants.length, 2, 'once is enough')
})

test('a late release of an older grant changes nothing', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.manager.setWaiting(2, orders, 1)
  const first = node.lastGrant()
  node.tickAt(1_100)
  t.match(node.lastGrant(), { sidecarId: 2, grantId: 2 })
  t.notOk(node.take(first))
  t.notOk(node.pops('empty', 0, first))
  t.ok(node.group()?.inFlight)
  t.ok(node.pops('empty'))
  t.notOk(node.group()?.inFlight)
})

test('a worker without waiters passes the wake-up on', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(1, orders, 1)
  node.manager.setWaiting(2, orders, 1)
  node.manager.notifyMessageAvailable(hint, { sidecarId: 2 })
  t.match(node.lastGrant(), { sidecarId: 1, source: 'ipc' })
  node.manager.releaseGroup(ordersKey, node.lastGrant().grantId, 'unused')
  t.match(node.lastGrant(), { sidecarId: 2, source: 'local' })
  node.manager.releaseGroup(ordersKey, node.lastGrant().grantId, 'unused')
  t.equal(node.grants.length, 2)
})

test('a contended pop is retried within 5 ms and does not count as empty', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('contended')
  t.equal(node.manager.nextTickAt(), 1_005)
  node.tickAt(1_004)
  t.equal(node.grants.length, 1)
  node.tickAt(1_005)
  t.equal(node.grants.length, 2)
  t.equal(node.group()?.consecutiveEmpty, 0)
})

test('a hint does not wait for the retry of a contended pop', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('contended')
  node.manager.handleMessageAvailable(hint)
  t.match(node.lastGrant(), { grantId: 2, source: 'udp' })
  node.pops('empty')
  node.tickAt(1_010)
  t.equal(node.grants.length, 2)
})

test('a group that stays contended is retried more slowly', async (t) => {
  const node = nodeFixture({ contendedRetriesMax: 3 })
  node.waits(1)
  for (let i = 0; i < 3; i += 1) {
    node.pops('contended')
    node.tickAt(node.clock.now + 5)
  }
  node.pops('contended')
  t.equal(node.manager.nextTickAt(), node.clock.now + sharedStateDefaults.baseIntervalMs)
})

test('a failed pop is not repeated at once', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('error')
  t.equal(node.grants.length, 1)
  t.match(node.manager.getStats().mode, { mode: 'aggressive', why: ['fetch_error'] })
  t.equal(node.manager.nextWakeAt() <= 1_100, true)
})

test('empty pops increase the backoff, and a hint for the queue resets it', async (t) => {
  const node = nodeFixture()
  node.manager.reportFault('listener_lost')
  const climbed: number[] = []
  for (let i = 0; i < 7; i += 1) {
    node.waits(1)
    node.pops('empty')
    climbed.push(node.manager.getGroupInterval(ordersKey))
  }
  t.same(climbed, [100, 100, 200, 400, 800, 1_000, 1_000])
  t.equal(node.manager.getStats().group_backoff.groups_backed_off, 1)
  t.notOk(node.manager.shouldCheckGroup(ordersKey))
  node.clock.now += 1_000
  t.ok(node.manager.shouldCheckGroup(ordersKey))
  node.manager.resetBackoffForQueue({ queue: 'orders' })
  t.equal(node.manager.getGroupInterval(ordersKey), 100)
  t.equal(node.manager.getGroupInterval('unknown/*/g'), 100)
  t.ok(node.manager.shouldCheckGroup('unknown/*/g'))
})

test('a healthy node polls at the idle interval, whatever the backoff', async (t) => {
  const node = idleNode()
  t.equal(node.manager.getGroupInterval(ordersKey), 5_000)
  node.clock.now = 5_999
  t.notOk(node.manager.shouldCheckGroup(ordersKey))
  node.clock.now = 6_000
  t.ok(node.manager.shouldCheckGroup(ordersKey))
})

test('one worker at a time holds the lock of a group', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(1, orders, 1)
  const grantId = node.manager.tryAcquireGroup(1, ordersKey)
  t.equal(grantId, 1)
  t.equal(node.manager.tryAcquireGroup(2, ordersKey), undefined)
  t.equal(node.manager.tryAcquireGroup(2, 'unknown/*/g'), undefined)
  node.manager.releaseGroup(ordersKey, 1, 'empty')
  t.equal(node.manager.tryAcquireGroup(2, ordersKey), 2)
  t.same(node.grants, [])
})

test('hints from a peer or the database are not forwarded', async (t) => {
  const node = nodeFixture()
  node.manager.setWaiting(1, orders, 1)
  node.manager.handleMessageAvailable(hint, 'notify')
  t.match(node.lastGrant(), { source: 'notify' })
  t.same(node.broadcasts, [])
  node.manager.notifyPartitionFree({ ...hint, group: 'other' }, 'timer')
  t.equal(node.broadcasts.length, 1)
  t.equal(node.grants.length, 1, 'no other group is woken')
})

test('a full table refuses a new group if it cannot remove an unused one', async (t) => {
  const node = nodeFixture({ groupsMax: 1 })
  t.ok(node.manager.setWaiting(1, orders, 1))
  t.notOk(node.manager.setWaiting(1, { source: { queue: 'other' }, group: 'g' }, 1))
  node.manager.setWaiting(1, orders, 0)
  t.ok(node.manager.setWaiting(1, { source: { queue: 'other' }, group: 'g' }, 1))
  t.match(node.manager.getStats().group_backoff, { groups_tracked: 1 })
  t.equal(node.manager.getStats().counters.refusedGroups, 1)
})

test('a full table keeps a group with a pop in flight and removes a later one', async (t) => {
  const node = nodeFixture({ groupsMax: 2 })
  const [second, third] = ['second', 'third'].map((queue) => ({ source: { queue }, group: 'g' }))
  if (second === undefined || third === undefined) throw new Error('expected two groups')
  node.waits(1)
  const first = node.lastGrant()
  node.take(first)
  node.manager.setWaiting(1, orders, 0)
  node.manager.setWaiting(1, second, 1)
  node.manager.setWaiting(1, second, 0)
  t.ok(node.manager.setWaiting(1, third, 1), 'the second is removed')
  t.ok(node.pops('empty', 0, first), 'the first is still known')
})

test('a group without waiters is removed after a while', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.pops('empty')
  node.manager.setWaiting(1, orders, 0)
  node.tickAt(10_999)
  t.equal(node.manager.getStats().group_backoff.groups_tracked, 1)
  node.tickAt(11_000)
  t.equal(node.manager.getStats().group_backoff.groups_tracked, 0)
  t.equal(node.manager.nextWakeAt(), Number.POSITIVE_INFINITY)
})

test('the number of sidecars is limited', async (t) => {
  const node = nodeFixture({ sidecarsMax: 3 })
  node.manager.registerSidecar(3)
  t.throws(() => node.manager.registerSidecar(4), RangeError)
})

test('wake latency runs from the hint to the end of the pop that found messages', async (t) => {
  const node = nodeFixture()
  node.waits(1)
  node.take()
  node.clock.now = 1_003
  node.manager.handleMessageAvailable(hint)
  node.clock.now = 1_010
  node.pops('empty')
  node.clock.now = 1_015
  node.pops('messages')
  const { udp, local } = node.manager.getStats().wake_latency
  t.match(udp, { count: 1, sumMs: 12, maxMs: 12 })
  t.same(
    udp.buckets.filter(({ leMs }) => leMs === 10 || leMs === 20 || leMs === null),
    [
      { leMs: 10, count: 0 },
      { leMs: 20, count: 1 },
      { leMs: null, count: 1 },
    ],
  )
  t.equal(local.count, 0)
})

test('wake latency includes the time a worker left the grant untaken', async (t) => {
  const node = nodeFixture()
  for (const id of [1, 2]) node.manager.setWaiting(id, orders, 1)
  node.manager.handleMessageAvailable(hint)
  node.tickAt(1_100)
  node.clock.now = 1_104
  node.pops('messages')
  t.match(node.manager.getStats().wake_latency.udp, { count: 1, maxMs: 104 })
})

test('stats have the fields of the API', async (t) => {
  const node = nodeFixture()
  node.waits(1, orders, 2)
  t.strictSame(node.manager.getStats().group_backoff, {
    groups_tracked: 1,
    groups_in_flight: 1,
    groups_backed_off: 0,
    groups: [
      {
        key: groupKey(orders),
        intervalMs: 100,
        consecutiveEmpty: 0,
        inFlight: true,
        waiting: 2,
        nextCheckInMs: 5_000,
      },
    ],
  })
  t.match(node.manager.getStats().mode, { mode: 'healthy', since: 1_000, why: [] })
  t.match(node.manager.getStats().wakes, { local: 0, ipc: 0, udp: 0, notify: 0, timer: 0 })
})
