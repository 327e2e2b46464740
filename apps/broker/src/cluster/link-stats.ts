import type { GossipStats } from '@rouse/gossip'
import type { Original } from '@rouse/storage'
import type { PeerStats } from './peer-stats.ts'

export interface ClusterStats {
  readonly url: string | null
  readonly version: string
  /** Null unless this database is a copy that was not adopted. */
  readonly copy_of: Original | null
  readonly peers: readonly PeerStats[]
  readonly gossip: GossipStats & { readonly address: string }
}
