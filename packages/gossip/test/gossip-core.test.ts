import { test } from 'tap'
import type { OutgoingHint } from '../src/index.ts'
import { VirtualCluster } from './support/virtual-cluster.ts'

const orders: OutgoingHint = {
  kind: 'MESSAGE_AVAILABLE',
  scope: 'orders',
  part: 'eu-1',
  count: 3,
  labels: ['billing', 'shop', null],
  keys: ['q/orders'],
}

test('two nodes that know one address become members within three datagrams', async (t) => {
  const cluster = VirtualCluster.of(3)
  for (const index of [0, 1, 2]) {
    t.equal(Object.keys(cluster.statesSeenBy(index)).length, 2)
    t.same(new Set(Object.values(cluster.statesSeenBy(index))), new Set(['alive']))
    t.ok(cluster.at(index).events.every(({ at }) => at < 5))
  }
})

test('a hint reaches every interested peer once, with all its fields', async (t) => {
  const cluster = VirtualCluster.of(3)
  for (const index of [1, 2]) cluster.wait(index, 1, ['q/orders'])
  cluster.network.runFor(100)
  const sentAt = cluster.network.now
  cluster.network.act(cluster.at(0).node, (core, now) => core.hint(orders, now))
  cluster.network.runFor(100)
  for (const index of [1, 2]) {
    const [told, ...more] = cluster.at(index).hints
    const { keys: _, ...hint } = orders
    t.match(told, { hint, from: 'node-0' })
    t.ok((told?.at ?? 0) - sentAt < 1)
    t.same(more, [])
  }
  t.same(cluster.at(0).hints, [])
})

test('peers hold the interest, and the node learns which version they hold', async (t) => {
  const cluster = VirtualCluster.of(10)
  const [waiter] = cluster.nodes
  if (waiter === undefined) return
  cluster.wait(0, 7, ['q/orders'])
  cluster.network.runFor(20)
  t.equal(waiter.echoed.at(-1), 7)
  const sender = cluster.at(5).node
  cluster.network.act(sender, (core, now) => core.hint(orders, now))
  cluster.network.act(sender, (core, now) => core.hint({ ...orders, keys: ['q/else'] }, now))
  cluster.network.runFor(20)
  t.equal(waiter.hints.length, 1)
})

test('a node that falls silent sends its last hints, and then looks dead to its peers', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { node } = cluster.at(0)
  const others = [cluster.at(1), cluster.at(2)]
  for (const index of [1, 2]) cluster.wait(index, 1, ['q/orders'])
  cluster.network.runFor(100)
  cluster.network.act(node, (core, now) => core.hint(orders, now))
  cluster.network.act(node, (core, now) => core.hint({ ...orders, scope: 'last' }, now))
  cluster.network.act(node, (core, now) => core.fallSilent(now))
  cluster.network.runFor(100)
  for (const other of others) {
    t.same(
      other.hints.map(({ hint }) => hint.scope),
      ['orders', 'last'],
    )
    t.equal(other.stateOf('node-0'), 'alive')
  }
  t.equal(node.core.nextTickAt(), Number.POSITIVE_INFINITY)
  cluster.network.runFor(6_000)
  for (const { events, lost } of others) {
    const fate = events.filter(({ nodeId }) => nodeId === 'node-0').map(({ event }) => event)
    t.same(fate.slice(-2), ['suspect', 'dead'])
    t.same(lost, [])
  }
})

test('a node that leaves is removed at once', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { node } = cluster.at(0)
  cluster.network.act(node, (core, now) => core.leave(now))
  cluster.network.runFor(1)
  t.equal(cluster.at(1).stateOf('node-0'), 'left')
  t.equal(cluster.at(2).stateOf('node-0'), 'left')
  cluster.network.runFor(100)
  t.equal(node.core.nextTickAt(), Number.POSITIVE_INFINITY)
})
