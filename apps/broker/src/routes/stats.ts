import type { FastifyInstance } from 'fastify'
import type { BrokerContext } from '../broker-context.ts'

/** From the primary's memory; no query is made. */
export function statsRoute(app: FastifyInstance, context: BrokerContext): void {
  app.get('/stats', () => context.stats())
}
