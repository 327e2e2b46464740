import { RouseError } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import type { BrokerContext } from '../broker-context.ts'
import { clusterStats, describeNodes } from '../cluster/cluster-view.ts'

type Query = { readonly scope?: unknown }

/** From the primaries' memory; no query is made. */
export function statsRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.get('/stats', async (request) => {
    const { scope = 'node' } = request.query as Query
    if (scope === 'node') return context.stats()
    if (scope === 'cluster') return clusterStats(await context.stats())
    throw new RouseError('invalid_request', 'scope must be node or cluster')
  })

  app.get('/api/v1/nodes', async () => describeNodes(await context.stats()))
}
