import type { FastifyInstance } from 'fastify'
import type { BrokerContext } from '../worker/context.ts'

export function healthRoutes(app: FastifyInstance, context: BrokerContext): void {
  /** Shows that the event loop runs. Does not query the database. */
  app.get('/live', async () => ({ status: 'live', node: context.config.nodeId }))

  /** Whether a load balancer should send requests here. Existing clients ask for `/health`. */
  for (const path of ['/ready', '/health']) {
    app.get(path, async () => {
      await context.checkReady()
      return { status: 'ready', node: context.config.nodeId }
    })
  }
}
