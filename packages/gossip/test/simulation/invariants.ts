import { type PeerView, presets } from '../../src/index.ts'
import type { Application } from './application.ts'

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
      // Not for the time in which it stood still itself.
      const allowedMs = silenceMs(running.length) + app.node.stalledMs
      const reachedAt = other?.heardFrom.get(app.node) ?? Number.NEGATIVE_INFINITY
      const isSameLife = other?.incarnation === peer.incarnation
      if (isSameLife && now - reachedAt <= allowedMs) return []
      if (!isSameLife && peer.heardAgoMs <= allowedMs) return []
      return [`${app.node.nodeId} takes ${peer.nodeId} for alive, reached at ${reachedAt}`]
    })
  })
}

/** Where a node was told that every peer holds its interest, every peer it knows of sends it hints: for
 * what it waits for, and for what it waited for until 10 s ago. But for a peer that has given it up, and of which
 * it has not heard long enough to know. */
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
      if (missing === undefined) return []
      const noticedAfterMs = silenceMs(awake.length) + node.stalledMs
      if (!other.knows(app) && now - other.gaveUpAt(app) <= noticedAfterMs) return []
      return [`${peer.nodeId} does not tell ${node.nodeId} of ${missing}`]
    })
  })
}

/** How long nothing may come back until a member is not taken for alive any more: it is judged once in T. */
function silenceMs(nodeCount: number): number {
  const intervalMs = Math.max(lan.heartbeatMs, lan.heartbeatPerNodeMs * nodeCount)
  return (lan.deadAfter + 2) * intervalMs * 1.1
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
