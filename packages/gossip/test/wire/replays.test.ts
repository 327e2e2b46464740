// Recorded datagrams, replayed to their recipient and to others, have no effect.
import fc from 'fast-check'
import { test } from 'tap'
import type { OutgoingHint } from '../../src/index.ts'
import { addressOf, VirtualCluster } from '../support/virtual-cluster.ts'

interface Recorded {
  readonly bytes: Buffer
  readonly from: string
  readonly to: string
}

const elsewhere = '10.6.6.6:666'
const hint: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }

/** Records all datagrams between `count` nodes. Each node has its own interests, and node 1 sends a hint. */
function record(count = 3) {
  const cluster = new VirtualCluster({ secrets: ['a secret that was recorded'] })
  const { network } = cluster
  const recorded: Recorded[] = []
  network.onSend = (bytes, from, to) => recorded.push({ bytes: Buffer.from(bytes), from, to })
  for (let index = 0; index < count; index += 1) cluster.start(index)
  cluster.discoverAll()
  network.runFor(2_000)
  for (const index of cluster.nodes.keys()) {
    for (let version = 1; version <= 1 + index * 3; version += 1) {
      cluster.wait(index, version, [`q/${version}`])
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

/** Returns everything that a node knows and has reported, except for datagram counters. */
function knowledgeOf(cluster: VirtualCluster, index: number) {
  const { node, hints, events, lost, echoed, superseded } = cluster.at(index)
  const peers = node.core.peers(cluster.network.now).map((peer) => {
    return { ...peer, datagramsReceived: 0, datagramsSent: 0, replaysDropped: 0 }
  })
  const { candidates } = node.core.stats()
  return structuredClone({ peers, candidates, hints, events, lost, echoed, superseded })
}

test('recorded traffic in any order changes nothing that a node knows', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  network.onSend = undefined
  const before = knowledgeOf(cluster, 0)
  // The traffic is also replayed to a node that knows no peer yet and gets no replies.
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

test('a heartbeat to another node does not count as one to us', async (t) => {
  const { cluster, recorded } = record(10)
  const { network } = cluster
  const waiter = cluster.at(0)
  network.cut(addressOf(0), addressOf(1))
  cluster.wait(0, 2, ['q/new'])
  network.runFor(100)
  t.equal(waiter.echoed.at(-1), 1, 'node-1 does not hold it yet')
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

test('recorded traffic of a dead peer does not revive it', async (t) => {
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

test('a peer that dies is detected in time although its traffic to others is replayed', async (t) => {
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

test("a vouch for another node's request does not count", async (t) => {
  const { cluster, recorded } = record(4)
  const { network } = cluster
  recorded.length = 0
  // Node 2 no longer hears node 3 and asks the other nodes, which do hear it.
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

test('a notice for another node, or for an ended incarnation, supersedes no node', async (t) => {
  const { cluster, recorded } = record()
  const { network } = cluster
  const earlier = cluster.at(0)
  const later = cluster.start(0, '10.7.7.7:4601')
  cluster.discoverAll()
  network.runFor(3_000)
  t.same(earlier.superseded, [4])
  network.onSend = undefined
  for (const { node } of [earlier, later]) network.crash(node)
  // Wait until no running node reports the ended incarnations any more.
  network.runFor(20_000)
  // A database that was restored from a backup assigns lower incarnations.
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

test('replayed traffic from arbitrary addresses causes few hellos and takes no space from others', async (t) => {
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
  t.ok(greetings <= 5, `${greetings} hellos for one datagram`)
  for (let port = 1; port <= 5_000; port += 1) {
    replay(cluster, 0, said.slice(-1), `10.6.6.6:${port}`)
  }
  t.ok(node.core.stats().candidates < 300)
  cluster.start(5)
  network.act(node, (core, now) => core.discovered([addressOf(1), addressOf(5)], now))
  network.runFor(500)
  t.equal(cluster.at(0).stateOf('node-5'), 'alive')
})

test('a node that left can return with a lower incarnation once its old datagrams have expired', async (t) => {
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
  t.equal(cluster.at(0).stateOf('node-2'), 'left', 'its old datagrams do not bring it back')
  const name = { nodeId: 'node-2', address: addressOf(2), incarnation: 1 }
  const lower = network.start(name, { onHint: () => undefined })
  network.act(lower, (core, now) => core.discovered([addressOf(0)], now))
  network.runFor(1_000)
  t.equal(cluster.at(0).stateOf('node-2'), 'alive')
  t.equal(cluster.at(1).stateOf('node-2'), 'alive')
})

test('hints for another node neither count as ours nor hide the loss of ours', async (t) => {
  const { cluster, recorded } = record(10)
  const { network } = cluster
  for (const index of cluster.nodes.keys()) cluster.wait(index, 50, [`q/${index}`])
  // Wait until the earlier interests have expired as well.
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
  t.same(scopes().slice(-1), ['0'], 'the second copy arrives')
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

test("our own datagrams, replayed from a peer's address, do not prevent meeting that peer again", async (t) => {
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
