// Lets pages of listed origins use the API from a browser. Without listed origins no response has these
// headers, and browsers keep responses from pages of other origins. Cookies are never allowed: a page sends
// its credential in the Authorization header.
import type { FastifyInstance } from 'fastify'
import { ConfigError } from '../config/config-error.ts'

const methods = 'GET, POST, PUT, PATCH, DELETE'
const requestHeaders = 'authorization, content-type, x-request-id'
const responseHeaders = 'x-request-id, retry-after, www-authenticate, location'
const maxAgeSeconds = 600

/** Applies to all routes that are registered after this call. */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  const allowed = new Set(origins)
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers
    reply.header('vary', 'origin')
    if (origin === undefined || !allowed.has(origin)) return done()
    reply.header('access-control-allow-origin', origin)
    reply.header('access-control-expose-headers', responseHeaders)
    const isPreflight = request.headers['access-control-request-method'] !== undefined
    if (request.method !== 'OPTIONS' || !isPreflight) return done()
    reply.header('access-control-allow-methods', methods)
    reply.header('access-control-allow-headers', requestHeaders)
    reply.header('access-control-max-age', maxAgeSeconds)
    void reply.code(204).send()
  })
}

/** Browsers send an origin as scheme, host and port, and compare it as text. */
export function checkOrigins(origins: readonly string[]): void {
  for (const origin of origins) {
    if (URL.canParse(origin) && new URL(origin).origin === origin && origin !== 'null') continue
    const problem = 'must list origins such as https://app.example, without a path and without *'
    throw new ConfigError('ROUSE_CORS_ORIGINS', `${problem}: ${JSON.stringify(origin)}`)
  }
}
