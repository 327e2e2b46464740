import { test } from 'tap'
import { headerBytes, tagBytes } from '../../src/wire/frame.ts'
import { readMessages } from '../../src/wire/message-reader.ts'
import type { VirtualNode } from '../simulation/virtual-node.ts'
import { addressOf, type ClusterNode, VirtualCluster } from '../support/virtual-cluster.ts'

test('a node that falls silent is suspect, then dead, and returns when it is heard', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const [one, two, three] = cluster.nodes.map(({ node }) => node.address) as [
    string,
    string,
    string,
  ]
  network.runFor(2_000)
  const cutAt = network.now
  for (const other of [two, three]) {
    network.cut(one, other)
    network.cut(other, one)
  }
  network.runFor(6_000)
  const events = cluster.at(1).events.filter(({ at }) => at > cutAt)
  t.same(
    events.map(({ nodeId, event }) => [nodeId, event]),
    [
      ['node-0', 'suspect'],
      ['node-0', 'dead'],
    ],
  )
  t.ok((events[0]?.at ?? 0) - cutAt <= 2_200 && (events[1]?.at ?? 0) - cutAt <= 5_500)
  t.equal(cluster.at(1).stateOf('node-2'), 'alive')
  network.mendAll()
  network.runFor(15_100)
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
})

test('a node that only others hear is unreachable, not dead', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  cluster.wait(0, 1, ['q/any'])
  network.runFor(100)
  network.cut(cluster.at(0).node.address, cluster.at(1).node.address)
  network.runFor(20_000)
  t.equal(cluster.at(1).stateOf('node-0'), 'unreachable')
  t.equal(cluster.at(0).stateOf('node-1'), 'suspect', 'it is heard, but does not hear')
  const peers = cluster.at(0).node.core.peers(network.now)
  t.equal(peers.find(({ nodeId }) => nodeId === 'node-1')?.hearsUs, false)
  t.ok(cluster.at(1).node.core.tells('node-0', ['q/any']), 'hints still go there')
  network.mendAll()
  network.runFor(1_500)
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  network.crash(cluster.at(0).node)
  network.runFor(6_000)
  t.equal(cluster.at(1).stateOf('node-0'), 'dead')
})

test('a restarted node replaces its earlier incarnation at once', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.crash(cluster.at(0).node)
  const again = cluster.start(0)
  cluster.discoverAll()
  network.runFor(300)
  const events = cluster.at(1).events.filter(({ nodeId }) => nodeId === 'node-0')
  t.same(
    events.map(({ event }) => event),
    ['joined', 'dead', 'joined'],
  )
  t.same(Object.values(cluster.statesSeenBy(1)), ['alive', 'alive'])
  t.same(
    again.events.map(({ event }) => event),
    ['joined', 'joined'],
  )
})

test('a new node at the same address replaces the previous one', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.crash(cluster.at(0).node)
  cluster.start(7, addressOf(0))
  cluster.discoverAll()
  network.runFor(300)
  t.equal(cluster.at(1).stateOf('node-0'), 'dead')
  t.equal(cluster.at(1).stateOf('node-7'), 'alive')
})

test('of two processes with one id the earlier learns that it is superseded', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const earlier = cluster.at(0)
  cluster.start(0, '10.7.7.7:4601')
  cluster.discoverAll()
  network.runFor(3_000)
  t.same(earlier.superseded, [4], 'once')
  t.same(cluster.at(0).superseded, [])
  const [seen] = cluster
    .at(1)
    .node.core.peers(network.now)
    .filter(({ nodeId }) => nodeId === 'node-0')
  t.match(seen, { incarnation: 4, state: 'alive', address: '10.7.7.7:4601' })
})

test('two processes with one id notify each other when they are alone', async (t) => {
  const cluster = new VirtualCluster()
  const { network } = cluster
  const earlier = cluster.start(0)
  const later = cluster.start(0, '10.7.7.7:4601')
  const greets = (node: VirtualNode, other: string) => {
    network.act(node, (core, now) => core.discovered([other], now))
    network.runFor(1_000)
  }
  greets(later.node, earlier.node.address)
  t.same(earlier.superseded, [2])
  const latest = cluster.start(0, '10.8.8.8:4601')
  greets(earlier.node, latest.node.address)
  t.same(earlier.superseded, [2, 3])
  t.same([later.superseded, latest.superseded], [[], []])
})

test('a departed node is shown for an hour', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.act(cluster.at(0).node, (core, now) => core.leave(now))
  network.crash(cluster.at(2).node)
  network.runFor(10_000)
  t.same(cluster.statesSeenBy(1), { 'node-0': 'left', 'node-2': 'dead' })
  network.runFor(3_592_000)
  t.same(cluster.statesSeenBy(1), { 'node-2': 'dead' })
  network.runFor(10_000)
  t.same(cluster.statesSeenBy(1), {})
})

test('a node that left stays away although its datagrams still arrive', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.runFor(1_000)
  Object.assign(network.quality, { delayMs: 400, jitterMs: 400 })
  network.runFor(1_000)
  Object.assign(network.quality, { delayMs: 0.2, jitterMs: 0.3 })
  network.act(cluster.at(0).node, (core, now) => core.leave(now))
  network.runFor(3_000)
  t.equal(cluster.at(1).stateOf('node-0'), 'left')
  t.ok(cluster.at(1).node.core.stats().drops.stale > 0)
})

for (const [greeter, answerer] of [
  ['a', 'z'.repeat(64)],
  ['z'.repeat(64), 'a'],
] as const) {
  const title = `the answer to a hello is no longer than the hello, ${greeter.length} bytes of id to ${answerer.length}`
  test(title, async (t) => {
    const { network } = new VirtualCluster()
    const sizes: number[] = []
    network.onSend = (bytes) => sizes.push(bytes.length)
    const [one] = [greeter, answerer].map((nodeId, index) => {
      const name = { nodeId, address: addressOf(index), incarnation: 1 }
      return network.start(name, { onHint: () => undefined })
    })
    if (one !== undefined) network.act(one, (core, now) => core.discovered([addressOf(1)], now))
    network.runFor(5)
    const [greeting = 0, answer = 0] = sizes
    t.ok(answer > 0 && answer <= greeting, `${answer} bytes for ${greeting}`)
  })
}

test('a node becomes a member whatever address it advertises', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const advertise = `rouse-0.${'rouse-headless.production.'.repeat(9)}svc.cluster.local:4601`
  const name = { nodeId: 'named', address: '10.0.5.5:4601', incarnation: 1, advertise }
  const node = network.start(name, { onHint: () => undefined })
  network.act(node, (core, now) => core.discovered([addressOf(0)], now))
  network.runFor(1_000)
  t.equal(cluster.at(0).stateOf('named'), 'alive')
  t.equal(cluster.at(1).stateOf('named'), 'alive')
})

test('nodes that know only one seed find each other through it', async (t) => {
  const cluster = new VirtualCluster()
  const { network } = cluster
  for (let index = 0; index < 12; index += 1) {
    const { node } = cluster.start(index)
    network.act(node, (core, now) => core.discovered([addressOf(0)], now, 'static'))
  }
  network.runFor(1_500)
  for (let index = 0; index < 12; index += 1) {
    const states = Object.values(cluster.statesSeenBy(index))
    t.equal(states.filter((state) => state === 'alive').length, 11)
  }
})

test('a node that knows every peer is welcomed without a list of peers', async (t) => {
  const cluster = VirtualCluster.of(6)
  let told = 0
  cluster.network.onSend = (bytes) => {
    const messages = readMessages(Buffer.from(bytes).subarray(headerBytes, -tagBytes))
    if (typeof messages === 'string') return
    const types = messages.map(({ type }) => type)
    if (types.includes('hello') && types.includes('peers')) told += 1
  }
  cluster.start(6)
  cluster.discoverAll()
  cluster.network.runFor(100)
  t.equal(Object.keys(cluster.statesSeenBy(6)).length, 6)
  t.equal(told, 0)
})

test('a stalled node suspects no peer', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  network.runFor(1_000)
  const { node, events } = cluster.at(0)
  const before = events.length
  network.stall(node, 12_000)
  network.runFor(20_000)
  t.same(events.slice(before), [])
  t.equal(node.core.stats().stalls, 1)
  t.equal(cluster.at(1).stateOf('node-0'), 'alive', 'the stalled node joins again')
})

test('a clock change neither kills nor revives a member', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  for (const stepMs of [3_600_000, -3_600_000, 7_000, -20_000]) {
    network.stepClock(cluster.at(0).node, stepMs)
    network.runFor(4_000)
  }
  t.ok(cluster.nodes.every(({ events }) => events.every(({ event }) => event === 'joined')))
  network.stepClock(cluster.at(0).node, -3_600_000)
  network.crash(cluster.at(1).node)
  network.runFor(6_500)
  t.equal(cluster.at(0).stateOf('node-1'), 'dead')
})

test('a node that was declared dead while it stalled is found soon after it resumes', async (t) => {
  for (const frozenMs of [8_000, 14_000, 22_000, 24_000, 40_000, 94_000]) {
    const cluster = VirtualCluster.of(3)
    const { network } = cluster
    const [a, b, frozen] = cluster.nodes as [ClusterNode, ClusterNode, ClusterNode]
    network.stall(frozen.node, frozenMs)
    network.runFor(frozenMs)
    t.equal(a.stateOf('node-2'), 'dead', `after ${frozenMs} ms`)
    network.runFor(1_500)
    const seen = [a.stateOf('node-2'), b.stateOf('node-2'), frozen.stateOf('node-0')]
    t.same(seen, ['alive', 'alive', 'alive'], `frozen for ${frozenMs} ms`)
    const before = frozen.events.length
    network.runFor(10_000)
    t.equal(frozen.events.length, before, 'nothing changes after that')
  }
})
