import fc from 'fast-check'
import { test } from 'tap'
import { batchesPerFlushMax, PendingHints, toPending } from '../../src/hints/pending-hints.ts'
import { type Route, routeOf } from '../../src/hints/route.ts'
import { type Hint, type OutgoingHint, presets } from '../../src/index.ts'
import { nameHash } from '../../src/interest/peer-interest.ts'
import { frameBytesMax } from '../../src/wire/frame.ts'
import { VirtualCluster } from '../support/virtual-cluster.ts'

const orders: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }

const name = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b', 'orders', 'pär=\0t') },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 50, maxLength: 300 }) },
  { weight: 1, arbitrary: fc.nat(10_000).map((number) => `queue-${number}`) },
)
const outgoing: fc.Arbitrary<OutgoingHint> = fc.record(
  {
    kind: fc.constantFrom('MESSAGE_AVAILABLE', 'PARTITION_FREE', 'SCHEDULED'),
    scope: name,
    part: name,
    count: fc.integer({ min: 1, max: 1_000 }),
    value: fc.nat(),
    labels: fc.array(fc.option(name), { maxLength: 4 }),
    keys: fc.array(fc.constantFrom('q/a', 'q/b'), { maxLength: 2 }),
    group: fc.constantFrom('g', 'h'),
    served: fc.subarray(['g', 'h', 'i']).map((groups) => new Set(groups)),
    spread: fc.constantFrom('one', 'all'),
  },
  { requiredKeys: ['kind', 'scope', 'count'] },
)

test('merging and widening never lose a submitted hint', async () => {
  fc.assert(
    fc.property(fc.array(outgoing, { maxLength: 400 }), (submitted) => {
      const pending = new PendingHints()
      for (const hint of submitted) pending.add(toPending(hint))
      const batches = pending.take()
      if (batches.length > batchesPerFlushMax) throw new Error(`${batches.length} batches`)
      const sent = batches.flat()
      for (const hint of submitted) {
        const isTold = sent.some(
          ({ hint: one, route }) => covers(one, hint) && reaches(route, hint),
        )
        if (!isTold) throw new Error(JSON.stringify(hint))
      }
      const isCounted = sent.every(({ hint: { kind } }) => kind !== 'EVERYTHING')
      const sum = (hints: readonly Hint[]) => hints.reduce((total, { count }) => total + count, 0)
      if (isCounted && sum(sent.map(({ hint }) => hint)) !== sum(submitted))
        throw new Error('count')
      if (pending.take().length > 0) throw new Error('a hint was left behind')
    }),
    { numRuns: 200 },
  )
})

/** Whether every peer that the hint is for gets what is sent. */
function reaches({ scopes, group, served, isOneFirst }: Route, hint: OutgoingHint): boolean {
  const own = routeOf(hint)
  if (isOneFirst && !own.isOneFirst) return false
  if (scopes === undefined) return true
  if (group !== undefined && group !== own.group) return false
  if (![...served].every((one) => own.served.has(one))) return false
  return hint.keys?.every((key) => scopes.includes(nameHash(key))) ?? false
}

function covers(sent: Hint, hint: Hint): boolean {
  if (sent.kind === 'EVERYTHING') return true
  if (sent.kind !== hint.kind || sent.scope !== hint.scope) return false
  if (sent.part !== undefined && sent.part !== hint.part) return false
  if (sent.labels !== undefined && JSON.stringify(sent.labels) !== JSON.stringify(hint.labels))
    return false
  if (hint.value === undefined || sent.value === undefined) return hint.value === undefined
  return sent.kind === 'SCHEDULED' ? sent.value <= hint.value : sent.value >= hint.value
}

test('every datagram of a burst of hints fits, and all hints arrive', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const sizes: number[] = []
  network.onSend = (bytes) => sizes.push(bytes.length)
  const before = sizes.length
  for (let index = 0; index < 300; index += 1) {
    const hint = { ...orders, scope: `queue-${index % 40}`, part: `partition-${index}` }
    network.act(cluster.at(0).node, (core, now) => core.hint(hint, now))
  }
  network.runFor(50)
  t.ok(Math.max(...sizes) <= frameBytesMax)
  t.ok(sizes.length - before <= 2 * batchesPerFlushMax)
  const scopes = new Set(cluster.at(1).hints.map(({ hint }) => hint.scope))
  t.ok(scopes.size === 40 || cluster.at(1).hints.some(({ hint }) => hint.kind === 'EVERYTHING'))
  t.ok(cluster.at(1).hints.length < 300, 'the hints that did not fit were widened')
})

test('fractional and out-of-range numbers are adjusted and do not invalidate the datagram', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const scheduled = { kind: 'SCHEDULED', count: 1 } as const
  const hints: OutgoingHint[] = [
    { ...scheduled, scope: 'a', value: 1_500.7 },
    { ...scheduled, scope: 'b', value: -3 },
    { ...scheduled, scope: 'c', value: Number.POSITIVE_INFINITY },
    { ...scheduled, scope: 'd', value: Number.NaN },
    { ...orders, scope: 'e', count: 2.5 },
    { ...orders, scope: 'f', count: -1 },
    { ...orders, scope: 'g', count: Number.NaN },
    { ...orders, scope: 'h', count: 2 ** 60 },
  ]
  for (const hint of hints) network.act(cluster.at(0).node, (core, now) => core.hint(hint, now))
  network.runFor(50)
  const most = Number.MAX_SAFE_INTEGER
  t.same(
    cluster.at(1).hints.map(({ hint: { scope, count, value } }) => [scope, count, value]),
    [
      ['a', 1, 1_500],
      ['b', 1, 0],
      ['c', 1, most],
      ['d', 1, undefined],
      ['e', 3, undefined],
      ['f', 0, undefined],
      ['g', 1, undefined],
      ['h', most, undefined],
    ],
  )
  t.equal(cluster.at(1).node.core.stats().drops.shape, 0)
})

test('the first hint is sent at once, the next ones together', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const { node } = cluster.at(0)
  const startedAt = network.now
  for (let index = 0; index < 30; index += 1) {
    network.at(startedAt + index * 0.1, () => {
      network.act(node, (core, now) => core.hint({ ...orders, part: `${index}` }, now))
    })
  }
  network.runFor(40)
  const { hints } = cluster.at(1)
  t.equal(hints.length, 30)
  t.ok((hints[0]?.at ?? 0) - startedAt < 0.6)
  t.ok(new Set(hints.map(({ at }) => at)).size <= 6)
})

test('each hint is sent twice and delivered once', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  let datagrams = 0
  network.onSend = () => {
    datagrams += 1
  }
  network.act(cluster.at(0).node, (core, now) => core.hint(orders, now))
  network.runFor(20)
  t.equal(datagrams, 2)
  t.equal(cluster.at(1).hints.length, 1)
  t.same(cluster.at(1).lost, [])
  network.runFor(5_000)
  t.equal(cluster.at(0).node.core.stats().hintDatagramsSent, 2, 'heartbeats do not count')
})

test('a hint whose first copy is lost arrives with the second', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  network.quality.loss = 1
  network.act(cluster.at(0).node, (core, now) => core.hint(orders, now))
  network.runFor(presets.lan.rideAfterMs / 2)
  network.quality.loss = 0
  network.runFor(10)
  t.equal(cluster.at(1).hints.length, 1)
  network.runFor(2_000)
  t.same(cluster.at(1).lost, [])
})

test('a heartbeat between the two copies of a hint reports no loss', async (t) => {
  const cluster = VirtualCluster.of(2, { preset: { ...presets.lan, rideAfterMs: 700 } })
  const { network } = cluster
  network.quality.loss = 1
  network.act(cluster.at(0).node, (core, now) => core.hint(orders, now))
  network.runFor(1)
  network.quality.loss = 0
  network.runFor(650)
  t.same(cluster.at(1).hints, [])
  network.runFor(2_000)
  t.equal(cluster.at(1).hints.length, 1)
  t.same(cluster.at(1).lost, [])
})

test('hints that are lost twice are reported once, within one heartbeat interval', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.runFor(1_000)
  network.cut(cluster.at(0).node.address, cluster.at(1).node.address)
  for (let round = 0; round < 3; round += 1) {
    network.act(cluster.at(0).node, (core, now) => core.hint(orders, now))
    network.runFor(20)
  }
  network.mendAll()
  network.runFor(500)
  t.same(cluster.at(1).lost, [{ from: 'node-0', count: 3 }])
  t.same(cluster.at(2).lost, [])
  network.runFor(5_000)
  t.equal(cluster.at(1).lost.length, 1)
  const peer = cluster
    .at(1)
    .node.core.peers(network.now)
    .find(({ nodeId }) => nodeId === 'node-0')
  t.equal(peer?.hintBatchesLost, 3)
})

test('a hello at a second address of a node causes no report of lost hints', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const waiter = cluster.at(0)
  for (let push = 0; push < 7; push += 1) {
    network.act(cluster.at(1).node, (core, now) => core.hint(orders, now))
    network.runFor(50)
  }
  cluster.wait(0, 5, ['q/x'])
  network.runFor(2_000)
  const alias = '10.5.5.5:4601'
  network.addAlias(cluster.at(1).node, alias)
  network.act(waiter.node, (core, now) => core.discovered([alias], now, 'static'))
  network.runFor(2_000)
  t.same(waiter.lost, [])
  t.same(waiter.echoed, [5], 'its interest does not seem forgotten either')
  t.equal(waiter.hints.length, 7)
})

for (const count of [2, 3]) {
  test(`a node of ${count} that was declared dead while it stalled gets a report of lost hints`, async (t) => {
    const cluster = VirtualCluster.of(count)
    const { network } = cluster
    const frozen = cluster.at(0)
    network.runFor(1_000)
    network.stall(frozen.node, 8_000)
    network.runFor(7_000)
    t.equal(cluster.at(1).stateOf('node-0'), 'dead')
    network.act(cluster.at(1).node, (core, now) => core.hint(orders, now))
    network.runFor(4_000)
    t.equal(cluster.at(1).stateOf('node-0'), 'alive')
    t.ok(
      frozen.events.every(({ event }) => event === 'joined'),
      'it does not know that it was declared dead',
    )
    t.same(frozen.lost, [{ from: 'node-1', count: 1 }])
  })
}

test('a node that was declared dead while no hints were sent gets no report', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.act(cluster.at(1).node, (core, now) => core.hint(orders, now))
  network.runFor(1_000)
  network.stall(cluster.at(0).node, 8_000)
  network.runFor(12_000)
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
  t.ok(cluster.at(1).events.some(({ event }) => event === 'dead'))
  t.same(cluster.at(0).lost, [])
})

for (const isPassed of [true, false]) {
  const what = isPassed
    ? 'is reported to the newcomer as lost'
    : 'would be missed if it were withheld'
  test(`a hint between the first contact and the join ${what}`, async (t) => {
    const cluster = VirtualCluster.of(1)
    const { network } = cluster
    const alone = cluster.at(0)
    t.same(alone.contacts, [], 'a node does not make contact with itself')
    const newcomer = cluster.start(1)
    alone.onTold = () => network.cut(newcomer.node.address, alone.node.address)
    network.act(newcomer.node, (core, now) => core.discovered([alone.node.address], now))
    network.runFor(20)
    t.equal(alone.contacts.length, 1, 'its hello was answered')
    t.equal(newcomer.stateOf('node-0'), 'alive')
    t.equal(alone.node.core.memberCount, 0, 'but its own answer was lost')
    if (isPassed) network.act(alone.node, (core, now) => core.hint(orders, now))
    network.mendAll()
    network.runFor(5_000)
    t.equal(alone.stateOf('node-1'), 'alive')
    t.same(newcomer.lost, isPassed ? [{ from: 'node-0', count: 1 }] : [])
    t.equal(alone.contacts.length, 1, 'contact is reported once')
  })
}

test('without peers hints are dropped', async (t) => {
  const cluster = VirtualCluster.of(1)
  const { network } = cluster
  network.act(cluster.at(0).node, (core, now) => core.hint(orders, now))
  cluster.start(1)
  cluster.discoverAll()
  network.runFor(1_000)
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
  t.same(cluster.at(1).hints, [])
})

test('a hint with an unknown count makes the count of the merged hint unknown', async (t) => {
  for (const counts of [
    [0, 3],
    [3, 0],
  ]) {
    const pending = new PendingHints()
    for (const count of counts) {
      pending.add(toPending({ kind: 'MESSAGE_AVAILABLE', scope: 'orders', count }))
    }
    t.same(
      pending
        .take()
        .flat()
        .map(({ hint }) => hint.count),
      [0],
    )
  }
})
