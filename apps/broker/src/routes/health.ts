import type { FastifyInstance } from 'fastify'
import { version } from '../version.ts'
import type { BrokerContext } from '../worker/context.ts'

const links = {
  dashboard: '/dashboard/',
  ready: '/ready',
  stats: '/stats',
  nodes: '/api/v1/nodes',
  queues: '/api/v1/queues',
  openapi: '/openapi.json',
  docs: '/docs/api',
}

export function healthRoutes(app: FastifyInstance, context: BrokerContext): void {
  /** Browsers are sent to the dashboard. The address is relative: a proxy may have removed a prefix of the path. */
  app.get('/', async (request, reply) => {
    reply.header('vary', 'accept')
    if (/\btext\/html\b/.test(request.headers.accept ?? ''))
      return reply.redirect('dashboard/', 302)
    return { name: 'rouse', version, node: context.config.nodeId, links }
  })

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
