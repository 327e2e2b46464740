import { useEffect } from 'preact/hooks'
import type { ClusterStats } from './answers.ts'
import { nodeUrls } from './connection.ts'
import { useEvents } from './live.ts'
import { type Data, useData } from './use-data.ts'

/** The stats of all nodes. Their addresses are remembered for the time when this one does not answer. */
export function useCluster(): Data<ClusterStats> {
  const cluster = useData<ClusterStats>('/stats?scope=cluster', { everyMs: 2_000 })
  const { data, reload } = cluster
  // A node that dies is shown at once, not with the next reading.
  useEvents('cluster', reload)
  useEffect(() => {
    if (data === undefined) return
    const known = data.nodes.flatMap(({ node, url }) =>
      url === undefined ? [] : [[node, url] as const],
    )
    if (known.length > 0) nodeUrls.set(new Map(known))
  }, [data])
  return cluster
}
