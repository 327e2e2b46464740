import { parseChoice } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { askingAs, clusterStats, describeNodes } from '../../cluster/cluster-stats.ts'
import type { BrokerContext } from '../../worker/context.ts'

type Query = { readonly scope?: unknown }

/** Served from the memory of the primaries, without a query. */
export function statsRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.get('/stats', async (request) => {
    const { scope = 'node' } = request.query as Query
    const isCluster = parseChoice('scope', scope, ['node', 'cluster']) === 'cluster'
    const stats = await context.stats()
    return isCluster ? clusterStats(stats, askingAs(context.nodeAuthorization)) : stats
  })

  app.get('/api/v1/nodes', async () => describeNodes(await context.stats()))
}
