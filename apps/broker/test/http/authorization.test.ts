// Every route declares the grant that it needs; without a declaration there is no server.
import { type Endpoint, endpoints } from '@rouse/protocol'
import fastify from 'fastify'
import { test } from 'tap'
import { OpenPolls } from '../../src/auth/open-polls.ts'
import { anonymous } from '../../src/auth/principal.ts'
import { RateLimits } from '../../src/auth/rate-limits.ts'
import { enforceGrants } from '../../src/http/authorization.ts'

function serverWith(list?: readonly Endpoint[]) {
  const app = fastify()
  const access = { authenticate: () => anonymous }
  const rateLimits = new RateLimits({ nowMs: () => 0, wallMs: () => 0 })
  enforceGrants(app, { access, openPolls: new OpenPolls(), rateLimits }, list)
  return app
}

test('a route that is not declared cannot be registered', async (t) => {
  const app = serverWith()
  t.throws(() => app.get('/api/v1/new', async () => ''), {
    message: 'GET /api/v1/new declares no grant',
  })
  t.throws(() => app.delete('/api/v1/push', async () => ''), {
    message: /DELETE .* declares no grant/,
  })
})

test('an endpoint without a declaration cannot be registered', async (t) => {
  const [first] = endpoints as [Endpoint]
  const { needs: _, ...undeclared } = first
  const app = serverWith([undeclared as Endpoint])
  t.throws(() => app.post(first.path, async () => ''), { message: /declares no grant/ })
})

test('routes without a credential are only those that hold no data', async (t) => {
  const open = endpoints.filter(({ needs }) => needs === 'nothing').map(({ path }) => path)
  const docs = ['/docs', '/docs/:folder/:page', '/docs/:page', '/docs/api']
  const dashboard = ['/dashboard', '/dashboard/', '/dashboard/:file']
  // The key is in the body, and without one the answer is that there is none.
  const sessions = Array.from({ length: 3 }, () => '/api/v1/session')
  t.same(open.sort(), [
    '/',
    ...sessions,
    ...dashboard,
    ...docs,
    '/health',
    '/live',
    '/openapi.json',
    '/ready',
  ])
  for (const { needs, path } of endpoints) if (needs !== 'nothing') t.not(needs.length, 0, path)
})
