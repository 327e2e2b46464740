// The address of a member: it does not change while the member is alive there, and after a failure it becomes
// the one from which the member responds.
import { test } from 'tap'
import type { OutgoingHint } from '../../src/index.ts'
import { headerBytes, tagBytes } from '../../src/wire/frame.ts'
import { readMessages } from '../../src/wire/message-reader.ts'
import type { VirtualNetwork } from '../simulation/virtual-network.ts'
import { addressOf, type ClusterNode, VirtualCluster } from '../support/virtual-cluster.ts'

const hint: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }
const detour = '10.6.6.6:666'

/** Opens a second route between two nodes, through an address that belongs to neither. */
function openDetour(network: VirtualNetwork, one: ClusterNode, other: ClusterNode) {
  const way = { isOpen: true }
  network.onSend = (bytes, from, to) => {
    if (to !== detour || !way.isOpen) return
    const receiver = from === one.node.address ? other : one
    const copy = Buffer.from(bytes)
    network.at(network.now + 0.1, () => {
      network.act(receiver.node, (core, now) => core.receive(copy, detour, now))
    })
  }
  return way
}

function addressSeen(cluster: VirtualCluster, by: number, nodeId: string): string | undefined {
  const peers = cluster.at(by).node.core.peers(cluster.network.now)
  return peers.find((peer) => peer.nodeId === nodeId)?.address
}

function hintsThatCome(cluster: VirtualCluster, from: number, to: number): number {
  const { network } = cluster
  const before = cluster.at(to).hints.length
  for (let push = 0; push < 10; push += 1) {
    network.act(cluster.at(from).node, (core, now) => core.hint(hint, now))
    network.runFor(100)
  }
  return cluster.at(to).hints.length - before
}

test('a member that is alive keeps its address, whatever else answers for it', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const way = openDetour(network, cluster.at(0), cluster.at(1))
  network.act(cluster.at(0).node, (core, now) => core.discovered([detour], now, 'static'))
  network.runFor(2_000)
  t.equal(addressSeen(cluster, 0, 'node-1'), addressOf(1))
  way.isOpen = false
  network.runFor(20_000)
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  t.equal(hintsThatCome(cluster, 0, 1), 10)
})

test('a member that was found on a second route is found on the first again', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const way = openDetour(network, cluster.at(0), cluster.at(1))
  network.act(cluster.at(0).node, (core, now) => core.discovered([detour], now, 'static'))
  network.cut(addressOf(0), addressOf(1))
  network.cut(addressOf(1), addressOf(0))
  network.runFor(8_000)
  t.equal(addressSeen(cluster, 0, 'node-1'), detour)
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  t.ok(hintsThatCome(cluster, 0, 1) > 0)
  way.isOpen = false
  network.mendAll()
  network.runFor(20_000)
  t.equal(addressSeen(cluster, 0, 'node-1'), addressOf(1))
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
  t.equal(hintsThatCome(cluster, 0, 1), 10)
})

test('a member whose address changes suddenly is found at the new one', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  network.runFor(1_000)
  const { events } = cluster.at(0)
  const moved = '10.5.5.5:4601'
  network.rebind(cluster.at(1).node, moved)
  network.runFor(7_000)
  t.equal(addressSeen(cluster, 0, 'node-1'), moved)
  t.equal(addressSeen(cluster, 2, 'node-1'), moved)
  network.runFor(2_000)
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
  t.equal(cluster.at(1).stateOf('node-0'), 'alive')
  t.notOk(
    events.some(({ event }) => event === 'dead'),
    'it was never declared dead',
  )
  t.equal(hintsThatCome(cluster, 0, 1), 10)
})

test('a member that moves replaces the member that had the address', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  network.runFor(1_000)
  network.crash(cluster.at(2).node)
  network.rebind(cluster.at(1).node, addressOf(2))
  network.runFor(15_000)
  t.same(cluster.statesSeenBy(0), { 'node-1': 'alive', 'node-2': 'dead', 'node-3': 'alive' })
  t.equal(addressSeen(cluster, 0, 'node-1'), addressOf(2))
})

test('a node never sends a hello to its advertised address, and rarely to an alias of it', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const { node } = cluster.at(0)
  const alias = '10.5.5.5:4601'
  const greeted: string[] = []
  network.onSend = (bytes, from, to) => {
    if (from === node.address) greeted.push(to)
    const comeBack = () => {
      network.act(node, (core, now) => core.receive(Buffer.from(bytes), alias, now))
    }
    if (to === alias) network.at(network.now + 0.1, comeBack)
  }
  network.act(node, (core, now) => core.discovered([node.address, alias], now, 'static'))
  network.runFor(60_000)
  t.equal(greeted.filter((to) => to === node.address).length, 0)
  t.equal(greeted.filter((to) => to === alias).length, 5, 'once more, then every 15 s')
  t.equal(node.core.stats().drops.self, 5)
})

test('a member that answers from elsewhere does not move to the address on trial', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const alias = '10.5.5.5:4601'
  network.addAlias(cluster.at(1).node, alias)
  network.cut(addressOf(0), addressOf(1))
  network.runFor(7_000)
  t.equal(cluster.at(0).stateOf('node-1'), 'suspect', 'it is heard, but does not hear')
  const { answered } = watchAnswers(network)
  network.act(cluster.at(0).node, (core, now) => core.discovered([alias], now, 'static'))
  network.runFor(2_000)
  t.ok(answered.size > 0, 'it answers the hello to its other address')
  t.equal(addressSeen(cluster, 0, 'node-1'), addressOf(1))
})

/** Records the addresses from which node 0 gets replies to its hellos. */
function watchAnswers(network: VirtualNetwork) {
  const answered = new Set<string>()
  network.onSend = (bytes, from, to) => {
    const messages = readMessages(Buffer.from(bytes).subarray(headerBytes, -tagBytes))
    const isReply =
      typeof messages !== 'string' &&
      messages.some((message) => message.type === 'hello' && message.isReply)
    if (isReply && to === addressOf(0)) answered.add(from)
  }
  return { answered }
}
