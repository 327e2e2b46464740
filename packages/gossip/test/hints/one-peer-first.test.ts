// Hints that one peer per consumer group gets first, and that the others get only if it does not settle them.
import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { type Choosable, choosePeers } from '../../src/hints/chosen-peers.ts'
import { writeRecipients } from '../../src/hints/recipients.ts'
import { KeyRing, type OutgoingHint, presets } from '../../src/index.ts'
import { clusterNumber, sealFrame, senderKey } from '../../src/wire/frame.ts'
import { packMessages } from '../../src/wire/messages.ts'
import { unsigned } from '../simulation/unsigned.ts'
import { addressOf, VirtualCluster } from '../support/virtual-cluster.ts'

const { askMs } = presets.lan
/** The round trip and the delay of a datagram in the virtual network. */
const networkMs = 2
const orders: OutgoingHint = {
  kind: 'MESSAGE_AVAILABLE',
  scope: 'orders',
  count: 1,
  keys: ['q/orders'],
  spread: 'one',
}

/** The last node sends hints; `groups` are the consumer groups of the others. */
function clusterWith(...groups: (readonly string[])[]) {
  const cluster = VirtualCluster.of(groups.length + 1)
  const { network } = cluster
  for (const [index, own] of groups.entries()) cluster.wait(index, 1, ['q/orders'], [...own])
  // Long enough that every round trip is known.
  network.runFor(1_500)
  const sender = cluster.at(groups.length)
  const waiters = cluster.nodes.slice(0, -1)
  const send = (hint: Partial<OutgoingHint> = {}) =>
    network.act(sender.node, (core, now) => core.hint({ ...orders, ...hint }, now))
  /** How many hints each node with waiters has received. */
  const counts = () => waiters.map(({ hints }) => hints.length)
  return { cluster, network, sender, waiters, send, counts }
}

function settleAll({ nodes }: VirtualCluster): void {
  for (const node of nodes) node.settles = true
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

test('one peer gets the hint, and the others get nothing if it settles the hint', async (t) => {
  const { cluster, network, sender, send, counts } = clusterWith(['g'], ['g'], ['g'], ['g'])
  settleAll(cluster)
  for (let push = 1; push <= 8; push += 1) {
    send()
    network.runFor(100)
    t.equal(sum(counts()), push)
  }
  t.same(counts(), [2, 2, 2, 2], 'the peers take turns')
  t.equal(sender.node.core.stats().hintDatagramsSent, 8, 'without second copies')
  const reports = cluster.nodes.map(({ node }) => node.core.stats().hintDatagramsSent)
  t.equal(sum(reports), 16, 'and one report each')
  t.ok(cluster.nodes.every(({ lost }) => lost.length === 0))
})

test('a settled hint needs no further heartbeats', async (t) => {
  const { cluster, network, sender, send } = clusterWith(['g'])
  const beatsAfterHint = () => {
    const before = sender.node.core.stats()
    send()
    network.runFor(1_000)
    const after = sender.node.core.stats()
    const hints = after.hintDatagramsSent - before.hintDatagramsSent
    return after.datagramsSent - before.datagramsSent - hints
  }
  const unsettled = beatsAfterHint()
  settleAll(cluster)
  network.runFor(1_000)
  const settled = beatsAfterHint()
  t.ok(settled <= 3 && unsettled >= 8, `${settled} and ${unsettled} heartbeats`)
})

test('if the peer does not settle the hint, the others get it when the time is over', async (t) => {
  const { network, send, counts } = clusterWith(['g'], ['g'], ['g'])
  send()
  network.runFor(askMs - 1)
  t.equal(sum(counts()), 1)
  network.runFor(1 + networkMs)
  t.same(counts(), [1, 1, 1])
  network.runFor(2_000)
  t.same(counts(), [1, 1, 1], 'once')
})

test('if the peer is killed, the others get the hint when the time is over', async (t) => {
  const { cluster, network, sender, send, counts } = clusterWith(['g'], ['g'], ['g'])
  settleAll(cluster)
  let asked: string | undefined
  network.onSend = (_, from, to) => {
    if (from === sender.node.address) asked ??= to
  }
  send()
  network.runFor(0.1)
  t.same(counts(), [0, 0, 0], 'the hint is in flight')
  const killed = cluster.nodes.findIndex(({ node }) => node.address === asked)
  network.crash(cluster.at(killed).node)
  network.runFor(askMs + networkMs)
  t.same(
    counts(),
    [0, 1, 2].map((index) => Number(index !== killed)),
  )
})

test('if the peer leaves, the others get the hint at once', async (t) => {
  const { network, waiters, send, counts } = clusterWith(['g'], ['g'], ['g'])
  send()
  network.runFor(1)
  const chosen = waiters.find(({ hints }) => hints.length === 1)
  if (chosen === undefined) return t.fail('no peer has the hint')
  network.act(chosen.node, (core, now) => core.leave(now))
  network.runFor(networkMs)
  t.same(counts(), [1, 1, 1])
})

test('a suspect peer is not chosen while another has the group', async (t) => {
  const { cluster, network, sender, send, counts } = clusterWith(['g', 'h'], ['g'], ['h', 'i'])
  settleAll(cluster)
  network.cut(addressOf(0), addressOf(3))
  network.runFor(2_500)
  t.equal(sender.stateOf('node-0'), 'suspect')
  send()
  network.runFor(100)
  t.same(counts(), [0, 1, 1])
  send({ served: new Set(['g', 'i']) })
  network.runFor(100)
  t.same(counts(), [0, 1, 2])
})

test('together the chosen peers have every consumer group', async (t) => {
  const { cluster, network, send, counts } = clusterWith(['g'], ['g', 'h'], ['i'], ['h'])
  settleAll(cluster)
  send()
  network.runFor(100)
  t.same(counts(), [0, 1, 1, 0])
})

test('a hint of one consumer group goes to a peer with this group only', async (t) => {
  const { cluster, network, send, counts } = clusterWith(['g'], ['h'], ['g'])
  settleAll(cluster)
  for (let push = 0; push < 2; push += 1) {
    send({ kind: 'PARTITION_FREE', group: 'g' })
    network.runFor(100)
  }
  t.same(counts(), [1, 0, 1])
})

test('a peer whose groups are all served gets no hint, not even later', async (t) => {
  const { network, sender, send, counts } = clusterWith(['g'], ['g', 'h'], ['i'])
  send({ served: new Set(['g', 'i']) })
  network.runFor(1_000)
  t.same(counts(), [0, 1, 0])
  send({ served: new Set(['g', 'h', 'i']) })
  network.runFor(1_000)
  t.same(counts(), [0, 1, 0])
  const before = sender.node.core.stats().hintDatagramsSent
  t.equal(before, 3, 'the hint and two more copies, because the peer does not report')
})

test('for a second after a hint that was not settled, the next copy does not wait for the report', async (t) => {
  const { cluster, network, sender, send } = clusterWith(['g'])
  const sentWithin = (ms: number) => {
    const before = sender.node.core.stats().hintDatagramsSent
    send()
    network.runFor(ms)
    return sender.node.core.stats().hintDatagramsSent - before
  }
  const early = presets.lan.rideAfterMs + 0.1
  t.ok(early < askMs)
  t.equal(sentWithin(early), 1)
  network.runFor(100)
  t.equal(sentWithin(early), 2, 'after an unsettled hint')
  network.runFor(100)
  settleAll(cluster)
  network.runFor(2_000)
  t.equal(sentWithin(early), 1, 'a second later')
})

test('a merged hint reaches every peer that one of the hints was for', async (t) => {
  const { network, cluster, send, counts } = clusterWith(['g'], ['g'], ['h'])
  settleAll(cluster)
  send()
  network.runFor(50)
  const before = sum(counts())
  t.equal(before, 2)
  // In one flush: the first hint was sent a moment ago.
  send()
  send({ served: new Set(['g', 'h']) })
  network.runFor(50)
  t.equal(sum(counts()), 4, 'a served hint and an unserved one: one peer for each group')
  send()
  send({ spread: 'all' })
  network.runFor(50)
  t.equal(sum(counts()), 7, 'a hint for all')
})

test('a peer whose interest is unknown gets the hint at once, and so does a chosen one', async (t) => {
  const { cluster, network, send, counts } = clusterWith(['g'], ['g'])
  settleAll(cluster)
  const late = cluster.start(3)
  network.cut(late.node.address, addressOf(2))
  cluster.discoverAll()
  network.runFor(50)
  network.mendAll()
  network.act(late.node, (core, now) => {
    core.setInterest({ version: 1, entries: [{ scope: 'q/else', group: 'g' }] }, now)
  })
  network.cut(late.node.address, addressOf(2))
  network.runFor(300)
  send()
  network.runFor(5)
  t.equal(sum(counts()), 1)
})

test('many peers with different round trips: near ones are chosen', async (t) => {
  const peers = [0.4, 0.9, 30, undefined].map((rttMs) => peer({ rttMs }))
  const interested = new Map(peers.map((one) => [one, [1]]))
  const chosen = Array.from({ length: 6 }, () => [...choosePeers(interested, 0)][0])
  t.same(
    chosen.map((one) => peers.findIndex((other) => other === one)),
    [0, 1, 0, 1, 0, 1],
  )
})

test('every group is covered, whatever the peers have, and a silent peer is the last resort', async (t) => {
  const random = seededRandom(3)
  for (let round = 0; round < 2_000; round += 1) {
    const peers = Array.from({ length: 1 + random.below(8) }, () =>
      peer({
        state: random.pick(['alive', 'alive', 'alive', 'suspect', 'unreachable']),
        rttMs: random.pick([0.1, 2, 50]),
        passedOverUntil: random.below(2),
      }),
    )
    const interested = new Map(
      peers.map((one) => [one, Array.from({ length: 1 + random.below(4) }, () => random.below(6))]),
    )
    const chosen = choosePeers(interested, 1)
    const groupsOf = (some: Iterable<(typeof peers)[number]>) =>
      new Set(Array.from(some, (one) => interested.get(one) ?? []).flat())
    const all = groupsOf(peers)
    if (groupsOf(chosen).size !== all.size) t.fail(`round ${round}: a group is not covered`)
    const alive = groupsOf(peers.filter(({ state }) => state === 'alive'))
    for (const one of chosen) {
      const isNeeded = interested.get(one)?.some((group) => !alive.has(group))
      if (one.state !== 'alive' && !isNeeded) t.fail(`round ${round}: a silent peer is chosen`)
    }
  }
})

function peer(more: Partial<Choosable>): Choosable {
  return { state: 'alive', rttMs: 0.5, chosenNumber: 0, passedOverUntil: 0, ...more }
}

test('lost, late and repeated reports are harmless', async (t) => {
  const { cluster, network, waiters, send, counts } = clusterWith(['g'], ['g'], ['g'])
  send()
  network.runFor(1)
  const chosen = waiters.findIndex(({ hints }) => hints.length === 1)
  network.cut(addressOf(chosen), addressOf(3))
  waiters[chosen]?.hints[0]?.settle?.()
  network.runFor(100)
  t.same(counts(), [1, 1, 1], 'the report was lost')
  network.mendAll()
  for (const { hints } of waiters) {
    hints[0]?.settle?.()
    hints[0]?.settle?.()
  }
  network.runFor(1_000)
  t.same(counts(), [1, 1, 1])
  t.ok(cluster.nodes.every(({ lost }) => lost.length === 0))
  settleAll(cluster)
  network.quality.duplication = 1
  send()
  network.runFor(1_000)
  t.equal(sum(counts()), 4, 'the report arrived twice')
  t.ok(cluster.nodes.every(({ lost }) => lost.length === 0))
})

test('a report about a batch that a peer did not get changes nothing', async (t) => {
  const { network, sender, waiters, send, counts } = clusterWith(['g'], ['g'], ['g'])
  const to = writeRecipients([senderKey('simulated', sender.node.nodeId)])
  let sequence = 1_000_000
  const report = (index: number, settled: readonly number[]) => {
    const { node } = waiters[index] ?? sender
    const { nodeId, incarnation } = node
    const cluster = clusterNumber('simulated')
    const origin = { cluster, sender: senderKey('simulated', nodeId), incarnation }
    sequence += 1
    const body = packMessages([{ type: 'settled', to, settled }])
    const bytes = sealFrame(origin, sequence, body, new KeyRing('simulated', []))
    network.act(sender.node, (core, now) => core.receive(bytes, node.address, now))
  }
  send()
  network.runFor(1)
  const chosen = waiters.findIndex(({ hints }) => hints.length === 1)
  const other = (chosen + 1) % 3
  for (let batch = 0; batch < 40; batch += 1) report(other, [batch, 0, batch, 1])
  report(other, [Number.MAX_SAFE_INTEGER, 0])
  network.runFor(askMs + networkMs)
  t.same(counts(), [1, 1, 1])
  const { drops } = sender.node.core.stats()
  t.equal(drops.misdirected + drops.mac + drops.shape + drops.replay, 0, 'all were decoded')
  send()
  network.runFor(3)
  const again = counts().findIndex((count) => count === 2)
  for (let batch = 0; batch < 40; batch += 1) report(again, [batch, 0])
  network.runFor(askMs + networkMs)
  t.equal(sum(counts()), 4, 'unlike a report of the peer that got it')
})

test('replayed reports settle nothing, at the sender of the hint or elsewhere', async (t) => {
  const { cluster, network, sender, send, counts } = clusterWith(['g'], ['g'], ['g'])
  settleAll(cluster)
  const recorded: { readonly bytes: Buffer; readonly from: string }[] = []
  network.onSend = (bytes, from) => recorded.push({ bytes: Buffer.from(bytes), from })
  send()
  network.runFor(50)
  t.equal(sum(counts()), 1)
  network.onSend = undefined
  for (const one of cluster.nodes) one.settles = false
  // The batches of both senders have the same numbers.
  const second = cluster.at(0)
  const replayAt = (target: typeof sender) => {
    for (const { bytes, from } of recorded) {
      network.act(target.node, (core, now) => core.receive(bytes, from, now))
    }
  }
  send()
  network.act(second.node, (core, now) => core.hint(orders, now))
  network.runFor(0.01)
  replayAt(sender)
  replayAt(second)
  network.runFor(askMs + networkMs)
  t.equal(sum(counts()), 1 + 3 + 2, 'the other peers of both senders get their hints')
  t.ok(second.node.core.stats().drops.misdirected > 0)
})

test('a node does not settle for a group that it has just removed from its interest', async (t) => {
  const preset = { ...presets.lan, interestLingerMs: 100 }
  const cluster = VirtualCluster.of(2, { preset, signer: unsigned })
  const { network } = cluster
  const [waiter, sender] = [cluster.at(0), cluster.at(1)]
  cluster.wait(0, 1, ['q/orders'], ['g', 'h'])
  network.runFor(1_500)
  cluster.wait(0, 2, ['q/orders'], ['g'])
  network.runFor(90)
  const send = () => {
    network.act(sender.node, (core, now) => core.hint(orders, now))
    network.runFor(2)
    return waiter.hints.at(-1)?.settle !== undefined
  }
  t.ok(send(), 'the group lingers, and the application sees it')
  t.same(waiter.node.core.advertisedGroups(['q/orders']), new Set(['g', 'h']))
  network.cut(waiter.node.address, sender.node.address)
  network.runFor(100)
  t.same(waiter.node.core.advertisedGroups(['q/orders']), new Set(['g']))
  t.notOk(send(), 'the sender still counts on the group')
  network.mendAll()
  network.runFor(1_000)
  t.ok(send())
})
