// The state of a member when datagrams arrive late, in one direction only, or from another incarnation.
import { test } from 'tap'
import type { GossipParts } from '../../src/gossip-parts.ts'
import { presets } from '../../src/index.ts'
import { judge, Member } from '../../src/membership/member.ts'
import { MemberWatch } from '../../src/membership/member-watch.ts'
import { Members } from '../../src/membership/members.ts'
import { headerBytes, tagBytes } from '../../src/wire/frame.ts'
import { readMessages } from '../../src/wire/message-reader.ts'
import { TokenClock } from '../../src/wire/token-clock.ts'
import { addressOf, VirtualCluster } from '../support/virtual-cluster.ts'

const [zero, one] = [addressOf(0), addressOf(1)]

test('an old token that comes back shows that a member is heard, not that it hears us', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  // Node 1 is cut off while it has a token of node 0 that it has not returned. The other nodes vouch for it.
  network.cut(one, zero)
  network.runFor(1_000)
  network.cut(zero, one)
  network.runFor(8_000)
  t.equal(cluster.at(0).stateOf('node-1'), 'unreachable')
  const mendedAt = network.now
  network.mend(one, zero)
  network.runFor(3_000)
  const events = cluster.at(0).events.filter(({ at }) => at > mendedAt)
  t.same(
    events.map(({ event }) => event),
    ['suspect'],
  )
  network.mendAll()
  network.runFor(1_500)
  t.equal(cluster.at(0).stateOf('node-1'), 'alive')
})

test('a vouch counts for one incarnation only', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  network.crash(cluster.at(1).node)
  network.cut(zero, one)
  network.cut(one, zero)
  cluster.start(1)
  cluster.discoverAll()
  network.runFor(8_000)
  t.equal(cluster.at(2).stateOf('node-1'), 'alive', 'they know the later one')
  t.equal(cluster.at(0).stateOf('node-1'), 'dead')
})

test('a vouch for an earlier incarnation does not count for the next one', async (t) => {
  const members = new Members('87654321')
  const tokens = new TokenClock(() => 0.5, 0)
  const parts = { members, tokens, preset: presets.lan, intervalMs: () => 500 } as GossipParts
  const options = { nodeId: 'one', sender: '12345678', address: one, sequence: 1, echoedAt: 0 }
  const member = new Member({ ...options, incarnation: 2 }, 0, 0)
  members.add(member)
  const silence = new MemberWatch(parts, () => {})
  const echo = tokens.issue(100)
  const word = { type: 'vouch', sender: member.sender, sinceHeardMs: 10, echo } as const
  silence.vouchedFor({ ...word, incarnation: 1 }, 110)
  t.equal(member.vouchedAt, Number.NEGATIVE_INFINITY)
  silence.vouchedFor({ ...word, incarnation: 2 }, 110)
  t.equal(member.vouchedAt, 110)
})

test('a stalled node does not forget that a peer vouched for a member', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  network.cut(one, zero)
  network.runFor(10_000)
  const { node, events } = cluster.at(0)
  t.equal(cluster.at(0).stateOf('node-1'), 'unreachable')
  const before = events.length
  network.stall(node, 4_000)
  network.runFor(10_000)
  t.same(events.slice(before), [])
  t.equal(node.core.stats().stalls, 1)
})

test('a member with slower heartbeats is judged by its own interval', async (t) => {
  const options = { nodeId: 'slow', sender: '12345678', incarnation: 1, address: one, sequence: 1 }
  const member = new Member({ ...options, echoedAt: 0 }, 0, 0)
  const judged = (now: number) => judge(member, now, presets.lan, 500)
  t.same([1_499, 1_500, 5_000].map(judged), ['alive', 'suspect', 'dead'])
  member.intervalMs = 2_000
  t.same([5_999, 6_000, 19_999, 20_000].map(judged), ['alive', 'suspect', 'suspect', 'dead'])
})

test('a larger cluster has a longer heartbeat interval', async (t) => {
  const preset = { ...presets.lan, heartbeatPerNodeMs: 200 }
  const cluster = VirtualCluster.of(10, { preset })
  const { network } = cluster
  network.runFor(3_000)
  let heartbeats = 0
  network.onSend = (bytes, from, to) => {
    const messages = readMessages(Buffer.from(bytes).subarray(headerBytes, -tagBytes))
    const isHeartbeat = typeof messages !== 'string' && messages[0]?.type === 'heartbeat'
    if (isHeartbeat && from === zero && to === one) heartbeats += 1
  }
  network.runFor(20_000)
  t.ok(heartbeats >= 9 && heartbeats <= 11, `${heartbeats} in 20 s, one every 2 s`)
})
