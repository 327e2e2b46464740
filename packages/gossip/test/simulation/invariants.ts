import { type PeerView, presets } from '../../src/index.ts'
import type { Application } from './application.ts'
import type { VirtualNode } from './virtual-network.ts'

const { lan } = presets

/** Nobody is alive for a node whose datagrams did not lately reach it and come back as an echo. */
export function checkEchoes(
  checked: readonly Application[],
  running: readonly Application[],
  now: number,
): string[] {
  const byId = new Map(running.map(({ node }) => [node.nodeId, node]))
  return checked.flatMap((app) => {
    return peersOf(app, now).flatMap((peer) => {
      if (peer.state !== 'alive') return []
      const other = byId.get(peer.nodeId)
      const intervalMs = Math.max(lan.heartbeatMs, lan.heartbeatPerNodeMs * running.length)
      // It is judged once in T, and not for the time in which it stood still itself.
      const allowedMs = (lan.deadAfter + 2) * intervalMs * 1.1 + app.node.stalledMs
      const reachedAt = other?.heardFrom.get(app.node) ?? Number.NEGATIVE_INFINITY
      const isSameLife = other?.incarnation === peer.incarnation
      if (isSameLife && now - reachedAt <= allowedMs) return []
      if (!isSameLife && peer.heardAgoMs <= allowedMs) return []
      return [`${app.node.nodeId} takes ${peer.nodeId} for alive, reached at ${reachedAt}`]
    })
  })
}

/** Where a node was told that every peer holds its interest, every peer it knows of sends it hints: for
 * what it waits for, and for what it waited for until 10 s ago. */
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
      const missing = keys.find((key) => !other.node.core.tells(node.nodeId, [key]))
      return missing === undefined || !knows(other, node, now)
        ? []
        : [`${peer.nodeId} does not tell ${node.nodeId} of ${missing}`]
    })
  })
}

function knows(app: Application, { nodeId, incarnation }: VirtualNode, now: number): boolean {
  const own = peersOf(app, now).find((peer) => peer.nodeId === nodeId)
  if (own === undefined || own.state === 'dead' || own.state === 'left') return false
  return own.incarnation === incarnation
}

/** Everybody sees everybody, and nobody else. */
export function checkWhole(running: readonly Application[], now: number): string[] {
  const expected = new Set(running.map(({ node }) => `${node.nodeId}/${node.incarnation}`))
  return running.flatMap((app) => {
    const own = `${app.node.nodeId}/${app.node.incarnation}`
    const seen = new Set(
      peersOf(app, now)
        .filter(({ state }) => state === 'alive')
        .map(({ nodeId, incarnation }) => `${nodeId}/${incarnation}`),
    )
    const missing = [...expected].filter((name) => name !== own && !seen.has(name))
    const ghosts = [...seen].filter((name) => !expected.has(name))
    if (missing.length === 0 && ghosts.length === 0) return []
    return [
      `${own} misses ${missing.join(' ') || 'nobody'}, sees ghosts ${ghosts.join(' ') || '-'}`,
    ]
  })
}

function peersOf(app: Application, now: number): PeerView[] {
  return app.node.core.peers(now + app.node.clockOffsetMs)
}
