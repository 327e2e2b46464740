// Groups that wait for the end of messages: their own hints, which all nodes get, and their own polls.
import { test } from 'tap'
import { groupKey, sharedStateDefaults } from '../src/index.ts'
import { hint, nodeFixture, orders } from './support/node-fixture.ts'

const ends = (worker: number) => ({ source: { queue: 'orders' }, group: `\u001f${worker}` })
const endHint = { queue: 'orders', group: '\u001f', namespace: null, task: null }

test('messages do not wake those who wait for an end, and an end wakes them on every worker', async (t) => {
  const node = nodeFixture()
  for (const worker of [1, 2]) {
    node.waits(worker, ends(worker))
    node.pops('empty')
  }
  node.waits(3)
  node.pops('empty')
  node.grants.length = 0
  node.manager.notifyMessageAvailable(hint, { sidecarId: 1 })
  t.same(
    node.grants.map(({ key }) => key),
    [groupKey(orders)],
  )
  node.pops('empty')
  node.grants.length = 0
  node.manager.notifyPartitionFree(endHint, { sidecarId: 1 })
  t.same(
    node.grants.map(({ sidecarId, key }) => [sidecarId, key]),
    [1, 2].map((worker) => [worker, groupKey(ends(worker))]),
  )
})

test('peers get the hint at once, also if this node has waiters', async (t) => {
  const node = nodeFixture({ holdHintMs: 10 })
  node.waits(1, ends(1))
  node.pops('empty')
  node.manager.notifyPartitionFree(endHint, { sidecarId: 1 })
  t.same(node.broadcasts, [endHint])
  t.same(node.served(), [[]])
})

test('every new waiter gets a lookup, whatever the last one found', async (t) => {
  const node = nodeFixture()
  node.waits(1, ends(1))
  node.pops('empty')
  node.grants.length = 0
  node.waits(1, ends(1), 2)
  t.equal(node.grants.length, 1)
})

test('an end is polled for every second, and what a poll finds does not count as a lost hint', async (t) => {
  const node = nodeFixture()
  node.waits(1, ends(1))
  node.pops('empty')
  const { completionIntervalMs, idleIntervalMs } = sharedStateDefaults
  t.equal(completionIntervalMs, 1_000)
  t.ok(completionIntervalMs < idleIntervalMs)
  t.equal(node.manager.getGroupInterval(groupKey(ends(1))), completionIntervalMs)
  node.clock.now += completionIntervalMs
  const due = node.due()
  t.same(due, [groupKey(ends(1))])
  node.manager.fallbackResult(due)
  t.equal(node.lastGrant().source, 'fallback')
  node.pops('empty')
  t.match(node.manager.getStats().mode, { mode: 'healthy' })
})
