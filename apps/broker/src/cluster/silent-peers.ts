import type { PeerView } from '@rouse/gossip'
import type { SeenNode } from '@rouse/storage'

/** A node that is new to us has this long to be heard. */
const graceMs = 1_500

/**
 * Knows which nodes write to the database and are not heard, or do not hear us: their hints do not reach us, or ours not
 * them. One that said goodbye is not missed.
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
