import type { PeerView } from '@rouse/gossip'
import type { SeenNode } from '@rouse/storage'

/** Grace period for a node that was just discovered. */
const graceMs = 1_500

/**
 * Detects nodes that write to the database although gossip with them fails in at least one direction. Hints
 * between them and this node may be lost. A node that sent a leave message does not count.
 */
export class SilentPeers {
  readonly #firstSeenAt = new Map<string, number>()

  find(nodes: readonly SeenNode[], peers: readonly PeerView[], nowMs: number): string[] {
    const byId = new Map(peers.map((peer) => [peer.nodeId, peer]))
    const lives = new Set(nodes.map(lifeOf))
    for (const life of this.#firstSeenAt.keys()) {
      if (!lives.has(life)) this.#firstSeenAt.delete(life)
    }
    return nodes
      .filter((node) => {
        const peer = byId.get(node.id)
        if (peer?.state === 'alive') return !peer.hearsUs
        if (peer?.state === 'left' && peer.incarnation >= node.incarnation) return false
        const life = lifeOf(node)
        const firstSeenAt = this.#firstSeenAt.get(life) ?? nowMs
        this.#firstSeenAt.set(life, firstSeenAt)
        const wasKnown = peer !== undefined && peer.incarnation >= node.incarnation
        return wasKnown || nowMs - firstSeenAt >= graceMs
      })
      .map(({ id }) => id)
  }
}

function lifeOf({ id, incarnation }: SeenNode): string {
  return `${incarnation} ${id}`
}
