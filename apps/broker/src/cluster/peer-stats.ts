// The part of `/stats` about the cluster: this node, and its peers as the node registry and gossip know them.
import type { GossipStats, PeerView } from '@rouse/gossip'
import type { Original, SeenNode } from '@rouse/storage'

export interface ClusterStats {
  readonly url: string | null
  readonly version: string
  /** Null unless this database is a copy that was not adopted. */
  readonly copy_of: Original | null
  readonly peers: readonly PeerStats[]
  readonly gossip: GossipStats & { readonly address: string }
}

/** A peer that the node registry or gossip knows, with the fields of both. */
export type PeerStats = Partial<Omit<PeerView, 'nodeId' | 'state'>> & {
  readonly id: string
  readonly state: PeerView['state'] | 'unheard'
  readonly url: string | null
  readonly version: string | null
  /** Time since the peer last wrote its row in the database. */
  readonly wroteAgoMs: number | null
}

/** The peers that the node registry lists or gossip has heard, by id. */
export function mergePeers(
  listed: readonly SeenNode[],
  heard: readonly PeerView[],
): readonly PeerStats[] {
  const ids = new Set([...listed.map(({ id }) => id), ...heard.map(({ nodeId }) => nodeId)])
  return [...ids].sort().map((id) => {
    const node = listed.find((one) => one.id === id)
    const { nodeId: _, ...peer } = heard.find((one) => one.nodeId === id) ?? { nodeId: id }
    const listing = { url: node?.httpUrl ?? null, version: node?.version ?? null }
    const wroteAgoMs = node === undefined ? null : Math.round(node.silentMs)
    return { id, state: 'unheard', ...listing, wroteAgoMs, ...peer }
  })
}
