import { type PeerView, presets } from '../../src/index.ts'
import type { Application } from './application.ts'
import type { VirtualNetwork } from './virtual-network.ts'
import { lifeOf, stalledMsSince } from './virtual-node.ts'

const { lan } = presets

/**
 * Rule: a node considers a peer alive only if the peer has recently received a datagram of the node, and the
 * node has received a later one of the peer. Time in which the node stalled does not count. The rule uses
 * what the network delivered, not what the node says.
 */
export function checkEchoes(
  checked: readonly Application[],
  network: VirtualNetwork,
  nodeCount: number,
): string[] {
  const { now } = network
  return checked.flatMap((app) => {
    return peersOf(app, now).flatMap((peer) => {
      if (peer.state !== 'alive') return []
      const answeredAt = lastAnswer(app, peer, network)
      const allowedMs = silenceMs(nodeCount) + stalledMsSince(app.node, answeredAt, now)
      if (now - answeredAt <= allowedMs) return []
      return [`${app.node.nodeId} takes ${lifeOf(peer)} for alive, which heard it at ${answeredAt}`]
    })
  })
}

/**
 * Rule: a silent peer becomes alive again only if it has recently received a datagram of the node. That the
 * node has received one of the peer is not enough. Time in which the node stalled does not count here either.
 */
export function checkReturn(
  app: Application,
  peer: PeerView,
  network: VirtualNetwork,
  nodeCount: number,
): string[] {
  const { now } = network
  const answeredAt = lastAnswer(app, peer, network)
  // One heartbeat interval more: when its clock is set back, a node loses the time since its last tick.
  const allowedMs = (lan.deadAfter + 1) * intervalMs(nodeCount)
  if (now - answeredAt <= allowedMs + stalledMsSince(app.node, answeredAt, now)) return []
  return [`${lifeOf(peer)} came back for ${app.node.nodeId}, and heard it at ${answeredAt}`]
}

/**
 * When the node sent the last datagram that the peer has confirmed: received before it sent one that arrived.
 */
function lastAnswer({ node }: Application, peer: PeerView, { lives }: VirtualNetwork): number {
  const other = lives.get(lifeOf(peer))
  return (other && node.answeredBy.get(other)) ?? Number.NEGATIVE_INFINITY
}

/**
 * Rule: once a node knows that every peer has its interest, every peer that it knows sends it hints, for the
 * keys that it waits for and for those it waited for in the last 10 s. An exception is a peer that has
 * dropped the node so recently that the node cannot know it yet.
 */
export function checkInterest(
  checked: readonly Application[],
  awake: readonly Application[],
  now: number,
): string[] {
  const awakeById = new Map(awake.map((app) => [app.node.nodeId, app]))
  return checked.flatMap((app) => {
    const { node } = app
    const lingering = [...app.withdrawn].filter(([, { at }]) => {
      return now + node.skippedMs - at < lan.interestLingerMs - 1
    })
    const keys = [...app.waits, ...lingering]
      .filter(([, { version }]) => version <= app.echoed)
      .map(([key]) => key)
    return peersOf(app, now).flatMap((peer) => {
      const other = awakeById.get(peer.nodeId)
      if (other === undefined || other.node.incarnation !== peer.incarnation) return []
      if (peer.state !== 'alive' && peer.state !== 'suspect') return []
      const missing = keys.find((key) => {
        const [scope = '', group] = key.split(' ')
        return !other.node.core.tells(node.nodeId, [scope], group)
      })
      if (missing === undefined) return []
      const gaveUpAt = other.gaveUpAt(app)
      const noticedAfterMs = silenceMs(awake.length) + stalledMsSince(node, gaveUpAt, now)
      if (!other.knows(app) && now - gaveUpAt <= noticedAfterMs) return []
      // The peer has just become a member, and this node's half of the handshake may be in flight. The node
      // will learn soon that not every peer has its interest.
      if (now - app.knownSince(other) <= justKnownMs(awake.length)) return []
      return [`${peer.nodeId} does not send ${node.nodeId} hints about ${missing}`]
    })
  })
}

/** After a peer has joined, a node checks within this time whether all peers have its interest. */
function justKnownMs(nodeCount: number): number {
  return Math.max(lan.interestGapMs, 0.5 * nodeCount)
}

/**
 * How long a member may return no token and still count as alive. The node checks once per heartbeat
 * interval.
 */
function silenceMs(nodeCount: number): number {
  return (lan.deadAfter + 2) * intervalMs(nodeCount) * 1.1
}

/**
 * How long a member may be gone before it is suspect. The node checks once per heartbeat interval, and a
 * clock that is set back costs one more interval.
 */
function missedMs(nodeCount: number): number {
  return (lan.suspectAfter + 2) * intervalMs(nodeCount) * 1.1
}

function intervalMs(nodeCount: number): number {
  return Math.max(lan.heartbeatMs, lan.heartbeatPerNodeMs * nodeCount)
}

/**
 * Rule: every node sees every other running node and no ended one, except for an incarnation that ended too
 * recently to be detected.
 */
export function checkWhole(
  running: readonly Pick<Application, 'node'>[],
  network: VirtualNetwork,
): string[] {
  const { now, lives } = network
  const expected = new Set(running.map(({ node }) => lifeOf(node)))
  return running.flatMap((app) => {
    const own = lifeOf(app.node)
    const seen = new Set(
      peersOf(app, now)
        .filter(({ state }) => state === 'alive')
        .map(lifeOf),
    )
    const missing = [...expected].filter((name) => name !== own && !seen.has(name))
    const ghosts = [...seen].filter((name) => {
      if (expected.has(name)) return false
      const stoppedAt = lives.get(name)?.stoppedAt ?? Number.NEGATIVE_INFINITY
      const allowedMs = missedMs(running.length) + stalledMsSince(app.node, stoppedAt, now)
      return now - stoppedAt > allowedMs
    })
    if (missing.length === 0 && ghosts.length === 0) return []
    return [
      `${own} misses ${missing.join(' ') || 'no node'}, sees ghosts ${ghosts.join(' ') || '-'}`,
    ]
  })
}

function peersOf({ node }: Pick<Application, 'node'>, now: number): PeerView[] {
  return node.core.peers(now + node.clockOffsetMs)
}
