// What was recorded on the network and is sent again, to whom it was for and to others: nothing of it counts.
import fc from 'fast-check'
import { test } from 'tap'
import type { OutgoingHint } from '../src/index.ts'
import { addressOf, VirtualCluster } from './support/virtual-cluster.ts'

interface Recorded {
  readonly bytes: Buffer
  readonly from: string
  readonly to: string
}

const elsewhere = '10.6.6.6:666'
const hint: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }

/** All datagrams between so many nodes, of which each says something of its own to each. */
function record(count = 3) {
  const cluster = new VirtualCluster({ secrets: ['a secret that was recorded'] })
  const { network } = cluster
  const recorded: Recorded[] = []
  network.onSend = (bytes, from, to) => recorded.push({ bytes: Buffer.from(bytes), from, to })
  for (let index = 0; index < count; index += 1) cluster.start(index)
  cluster.discoverAll()
  network.runFor(2_000)
  for (const [index, { node }] of cluster.nodes.entries()) {
    for (let version = 1; version <= 1 + index * 3; version += 1) {
      const keys = [`q/${version}`]
      network.act(node, (core, now) => core.setInterest({ version, keys }, now))
      network.runFor(120)
    }
  }
  network.act(cluster.at(1).node, (core, now) => core.hint(hint, now))
  network.runFor(1_000)
  return { cluster, recorded }
}

function replay(
  cluster: VirtualCluster,
  index: number,
  datagrams: readonly Recorded[],
  source?: string,
) {
  const { node } = cluster.at(index)
  for (const { bytes, from } of datagrams) {
    cluster.network.act(node, (core, now) => core.receive(bytes, source ?? from, now))
  }
}

/** All that a node knows and was told, but for how many datagrams it counted. */
function knowledgeOf(cluster: VirtualCluster, index: number) {
  const { node, hints, events, lost, echoed, superseded } = cluster.at(index)
  const peers = node.core.peers(cluster.network.now).map((peer) => {
    return { ...peer, datagramsReceived: 0, datagramsSent: 0, replaysDropped: 0 }
  })
  const { candidates } = node.core.stats()
  return structuredClone({ peers, candidates, hints, events, lost, echoed, superseded })
}

test('a node knows no more and no less after recorded traffic, in whatever order', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  network.onSend = undefined
  const before = knowledgeOf(cluster, 0)
  // And one that knows nobody yet, and cannot be answered.
  const fresh = cluster.start(7, '10.9.9.9:4601')
  const order = fc.shuffledSubarray(recorded, { minLength: recorded.length / 2 })
  fc.assert(
    fc.property(order, fc.boolean(), (datagrams, isElsewhere) => {
      for (const index of [0, 7]) {
        replay(cluster, index, datagrams, isElsewhere ? elsewhere : undefined)
      }
    }),
    { numRuns: 20, seed: 1 },
  )
  t.same(knowledgeOf(cluster, 0), before)
  t.same(fresh.events, [])
  t.same(fresh.hints, [])
  const { drops } = cluster.at(0).node.core.stats()
  t.ok(drops.replay > 0 && drops.misdirected > 0 && drops.mac === 0)
})

test('what a member says to another is not taken as said to us', async (t) => {
  const { cluster, recorded } = record(10)
  const { network } = cluster
  const waiter = cluster.at(0)
  network.cut(addressOf(0), addressOf(1))
  network.act(waiter.node, (core, now) => core.setInterest({ version: 2, keys: ['q/new'] }, now))
  network.runFor(100)
  t.equal(waiter.echoed.at(-1), 1, 'node-1 has not heard of it')
  recorded.length = 0
  for (let round = 0; round < 100; round += 1) {
    network.runFor(10)
    const overheard = recorded.splice(0)
    replay(
      cluster,
      0,
      overheard.filter(({ from, to }) => from === addressOf(1) && to !== addressOf(0)),
      elsewhere,
    )
  }
  t.equal(waiter.echoed.at(-1), 1)
  t.same(waiter.lost, [])
  t.ok(waiter.node.core.stats().drops.misdirected > 10)
})

test('a peer that has died is not revived by what it once said', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  network.onSend = undefined
  network.crash(cluster.at(1).node)
  network.runFor(6_000)
  const { events } = cluster.at(0)
  t.equal(cluster.at(0).stateOf('node-1'), 'dead')
  const before = events.length
  for (const datagram of recorded) {
    replay(cluster, 0, [datagram])
    network.runFor(5)
  }
  t.equal(events.length, before)
  t.equal(cluster.at(0).stateOf('node-1'), 'dead')
})

test('a peer that dies is given up in time, though it is heard as others heard it', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  recorded.length = 0
  network.runFor(5_000)
  network.onSend = undefined
  network.crash(cluster.at(1).node)
  const said = recorded.filter(({ from, to }) => from === addressOf(1) && to !== addressOf(0))
  for (let round = 0; round < 11; round += 1) {
    replay(cluster, 0, said.splice(0, 1))
    network.runFor(500)
  }
  t.equal(cluster.at(0).stateOf('node-1'), 'dead')
})

test('nobody is vouched for by what was said to another', async (t) => {
  const { cluster, recorded } = record(4)
  const { network } = cluster
  recorded.length = 0
  // Node 2 asks the others about node 3, which they hear.
  network.cut(addressOf(3), addressOf(2))
  network.runFor(20_000)
  t.equal(cluster.at(2).stateOf('node-3'), 'unreachable')
  network.onSend = undefined
  const vouches = recorded.filter(({ from, to }) => from === addressOf(1) && to === addressOf(2))
  network.crash(cluster.at(3).node)
  for (let round = 0; round < 11; round += 1) {
    replay(cluster, 0, vouches.splice(0, 6))
    network.runFor(500)
  }
  t.equal(cluster.at(0).stateOf('node-3'), 'dead')
})

test('nobody is superseded by a notice to another, or by a life that is over', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  const earlier = cluster.at(0)
  const later = cluster.start(0, '10.7.7.7:4601')
  cluster.discoverAll()
  network.runFor(3_000)
  t.same(earlier.superseded, [4])
  network.onSend = undefined
  for (const { node } of [earlier, later]) network.crash(node)
  // Until nobody who lives would tell of them.
  network.runFor(20_000)
  // A database restored from a backup hands out lower numbers.
  const name = { nodeId: 'node-0', address: addressOf(0), incarnation: 1 }
  const superseded: number[] = []
  const restored = network.start(name, {
    onHint: () => undefined,
    onSuperseded: (incarnation) => superseded.push(incarnation),
  })
  for (const { bytes, from } of recorded) {
    network.act(restored, (core, now) => core.receive(bytes, from, now))
    replay(cluster, 1, [{ bytes, from, to: '' }])
    network.runFor(1)
  }
  t.same(superseded, [])
  t.same(cluster.at(1).superseded, [])
})

test('recorded traffic sent from anywhere brings its sources few greetings, and takes no room', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  const { node } = cluster.at(0)
  network.crash(cluster.at(2).node)
  network.runFor(6_500)
  const said = recorded.filter(({ from, to }) => from === addressOf(2) && to === addressOf(0))
  let greetings = 0
  network.onSend = (_, __, to) => {
    if (to === elsewhere) greetings += 1
  }
  replay(cluster, 0, said.slice(-1), elsewhere)
  network.runFor(60_000)
  t.ok(greetings <= 5, `${greetings} greetings for one datagram`)
  for (let port = 1; port <= 5_000; port += 1) {
    replay(cluster, 0, said.slice(-1), `10.6.6.6:${port}`)
  }
  t.ok(node.core.stats().candidates < 300)
  cluster.start(5)
  network.act(node, (core, now) => core.discovered([addressOf(1), addressOf(5)], now))
  network.runFor(500)
  t.equal(cluster.at(0).stateOf('node-5'), 'alive')
})

test('who left may come back with a lower number, when what it said before has passed', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  const said = recorded.filter(({ from }) => from === addressOf(2))
  network.onSend = undefined
  network.act(cluster.at(2).node, (core, now) => core.leave(now))
  network.runFor(100)
  network.crash(cluster.at(2).node)
  for (let second = 0; second < 20; second += 1) {
    replay(cluster, 0, said)
    network.runFor(1_000)
  }
  t.equal(cluster.at(0).stateOf('node-2'), 'left', 'what it said does not bring it back')
  const name = { nodeId: 'node-2', address: addressOf(2), incarnation: 1 }
  const lower = network.start(name, { onHint: () => undefined })
  network.act(lower, (core, now) => core.discovered([addressOf(0)], now))
  network.runFor(1_000)
  t.equal(cluster.at(0).stateOf('node-2'), 'alive')
  t.equal(cluster.at(1).stateOf('node-2'), 'alive')
})

test('hints to another neither pass for ours nor hide that ours were lost', async (t) => {
  const { cluster, recorded } = record(10)
  const { network } = cluster
  for (const [index, { node }] of cluster.nodes.entries()) {
    const interest = { version: 50, keys: [`q/${index}`] }
    network.act(node, (core, now) => core.setInterest(interest, now))
  }
  // Until the interests before are over, too.
  network.runFor(12_000)
  const tell = (...indexes: number[]) => {
    recorded.length = 0
    for (const index of indexes) {
      const keyed = { ...hint, scope: `${index}`, keys: [`q/${index}`] }
      network.act(cluster.at(9).node, (core, now) => core.hint(keyed, now))
    }
    network.runFor(1)
    return recorded.filter(({ from, to }) => from === addressOf(9) && to === addressOf(1))
  }
  const scopes = () => cluster.at(0).hints.map((one) => one.hint.scope)
  network.cut(addressOf(9), addressOf(0))
  replay(cluster, 0, tell(0, 1))
  network.mendAll()
  network.runFor(1_000)
  t.same(scopes().slice(-1), ['0'], 'the second ride comes')
  const before = cluster.at(0).hints.length
  network.cut(addressOf(9), addressOf(0))
  tell(0)
  network.runFor(10)
  network.mendAll()
  replay(cluster, 0, tell(1))
  network.runFor(1_000)
  t.equal(cluster.at(0).hints.length, before)
  t.same(cluster.at(0).lost, [{ from: 'node-9', count: 1 }])
})

test('our own datagrams that come from a peer do not keep us from meeting it again', async (t) => {
  const { cluster, recorded } = record(2)
  const { network } = cluster
  network.onSend = undefined
  const comeBack = () => {
    for (const [index, other] of [addressOf(1), addressOf(0)].entries()) {
      const own = recorded.filter(({ from }) => from === addressOf(index))
      replay(cluster, index, own.slice(-1), other)
    }
  }
  comeBack()
  network.cut(addressOf(0), addressOf(1))
  network.cut(addressOf(1), addressOf(0))
  network.runFor(6_000)
  t.equal(cluster.at(0).stateOf('node-1'), 'dead')
  comeBack()
  network.mendAll()
  for (let second = 0; second < 31; second += 1) {
    comeBack()
    network.runFor(1_000)
  }
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
})
