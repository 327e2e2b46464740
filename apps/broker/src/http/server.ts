// The HTTP server of a worker: everything that applies to all routes. Errors are answered as problem+json.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { RouseError, toProblem } from '@rouse/protocol'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { unknown } from '../auth/principal.ts'
import { registerRoutes } from '../routes/routes.ts'
import type { BrokerContext } from '../worker/context.ts'
import { methodsByPath } from './allowed-methods.ts'
import { auditActions, refusalOf } from './audit.ts'
import { enforceGrants } from './authorization.ts'
import { allowOrigins } from './cors.ts'
import { toRouseError } from './errors.ts'
import { parseJsonBody } from './json-body.ts'
import { applyRequestSchemas, compileOnFirstUse, encodingFault } from './request-schemas.ts'
import type { TlsOptions } from './tls.ts'
import { createFaultFinder } from './validation-errors.ts'

const requestTimeoutMs = 60_000
const keepAliveTimeoutMs = 65_000
const timeoutCheckMs = 2_000
const swallowedBytesMax = 64 * 1024 * 1024
/** A request that was sent when the server stopped listening has arrived after this time. */
const unusedMs = 500

/** With `tls` the server speaks HTTPS. */
export function createServer(context: BrokerContext, tls?: TlsOptions): FastifyInstance {
  const { config } = context
  const faults = createFaultFinder()
  const app = fastify({
    logger: false,
    bodyLimit: config.bodyMaxBytes,
    keepAliveTimeout: keepAliveTimeoutMs,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
    // Routes that pop opt out: HEAD would pop a message and discard it.
    exposeHeadRoutes: true,
    requestIdHeader: 'x-request-id',
    genReqId: newRequestId,
    // With a smaller limit, a name that is too long would be reported as an unknown route, not as invalid.
    routerOptions: { maxParamLength: config.headersMaxBytes },
    ...(config.basePath === undefined ? {} : { rewriteUrl: withoutPrefix(config.basePath) }),
    ...connectionOptions(config, tls),
    ajv: {
      customOptions: {
        coerceTypes: false,
        useDefaults: false,
        removeAdditional: false,
        strict: false,
      },
      onCreate(ajv) {
        compileOnFirstUse(ajv)
        faults.use(ajv)
      },
    },
    clientErrorHandler: (error, socket) => answerClientError(context, error, socket),
    frameworkErrors: (error, request, reply) => {
      void sendProblem(context, request, reply, error)
    },
  })
  closeUnusedConnections(app)
  parseBodies(app, context)
  const methods = methodsByPath(app)
  app.setErrorHandler((error, request, reply) =>
    sendProblem(context, request, reply, faults.complete(error, request)),
  )
  const refuseUnknown = (request: FastifyRequest, reply: FastifyReply): never => {
    const path = request.url.replace(/\?.*$/s, '')
    const allowed = methods(path)
    if (allowed.length === 0) {
      throw new RouseError('route_not_found', `there is no ${path}; /openapi.json lists the routes`)
    }
    reply.header('allow', allowed.join(', '))
    throw new RouseError('method_not_allowed', `${path} supports ${allowed.join(', ')}`)
  }
  app.setNotFoundHandler(refuseUnknown)
  app.decorateRequest('principal')
  // Callback hooks, because each async hook would cost every request a promise.
  app.addHook('onRequest', (request, _reply, done) => {
    request.principal = unknown
    context.counts.requests += 1
    done(encodingFault(request.url))
  })
  allowOrigins(app, config.corsOrigins)
  // Before the body is read: a route that does not exist needs no credential.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) refuseUnknown(request, reply)
    done()
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    chargeBytes(context, request, payload)
    reply.header('x-request-id', request.id)
    if (context.phase.isDraining) reply.header('connection', 'close')
    done(null, payload)
  })
  applyRequestSchemas(app)
  enforceGrants(app, context)
  auditActions(app, context)
  registerRoutes(app, context)
  return app
}

/**
 * Closes connections on which no request has come when the server stops. Otherwise the server would wait for
 * them. Clients open some in advance: the `fetch` of Node 20 does when a connection ends.
 */
function closeUnusedConnections(app: FastifyInstance): void {
  const { server } = app
  const unused = new Set<Socket>()
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  app.addHook('preClose', (done) => {
    setTimeout(() => {
      for (const socket of unused) socket.destroy()
    }, unusedMs).unref()
    done()
  })
}

/** A handshake may take as long as headers. */
function connectionOptions(config: BrokerContext['config'], tls: TlsOptions | undefined) {
  const http = {
    maxHeaderSize: config.headersMaxBytes,
    headersTimeout: config.headersTimeoutMs,
    connectionsCheckingInterval: timeoutCheckMs,
  }
  if (tls === undefined) return { http }
  return { https: { ...http, ...tls, handshakeTimeout: config.headersTimeoutMs } }
}

/** The path without the prefix of ROUSE_BASE_PATH, which a proxy in front may have left. */
function withoutPrefix(prefix: string): (request: IncomingMessage) => string {
  return ({ url = '/' }) => {
    if (!url.startsWith(prefix)) return url
    const rest = url.slice(prefix.length)
    if (rest === '' || rest.startsWith('?')) return `/${rest}`
    return rest.startsWith('/') ? rest : url
  }
}

function parseBodies(app: FastifyInstance, context: BrokerContext): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (request.headers['content-length'] === undefined) chargeBytes(context, request, body)
    try {
      done(null, parseJsonBody(body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
}

/** Counts what a key with limits sends and gets. */
function chargeBytes(
  { rateLimits }: BrokerContext,
  { principal: { keyId, limits } }: FastifyRequest,
  body: unknown,
): void {
  if (limits === undefined || keyId === undefined) return
  const isText = typeof body === 'string' || Buffer.isBuffer(body)
  if (isText) rateLimits.charge(keyId, Buffer.byteLength(body))
}

function sendProblem(
  context: BrokerContext,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const known = toRouseError(error)
  if (known.code === 'internal') {
    context.log.error(
      { requestId: request.id, method: request.method, err: known.cause ?? error },
      'request failed',
    )
  } else {
    const { id: requestId, method } = request
    context.log.debug({ requestId, method, code: known.code }, 'request refused')
  }
  const problem = toProblem(known, { requestId: request.id, node: context.config.nodeId })
  if (known.retryAfterSeconds !== undefined) reply.header('retry-after', known.retryAfterSeconds)
  if (known.code === 'unauthenticated' || known.code === 'forbidden') {
    context.audit.recordRefusal(() => refusalOf(request, known))
  }
  if (known.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer realm="rouse"')
  if (known.code === 'payload_too_large') swallowBody(request, reply)
  // Some errors of the framework skip the hooks.
  reply.header('x-request-id', request.id)
  const isTransaction = request.url.startsWith('/api/v1/transaction')
  return reply
    .code(known.status)
    .type('application/problem+json')
    .send(JSON.stringify(isTransaction ? { success: false, ...problem } : problem))
}

/**
 * If a connection is closed while bytes still arrive, it is reset, and the client never reads the error. So
 * the rest of a body that is too large is read and dropped, up to a limit of bytes and the request timeout.
 */
function swallowBody(request: FastifyRequest, reply: FastifyReply): void {
  if (Number(request.headers['content-length'] ?? 0) > swallowedBytesMax) return
  reply.removeHeader('connection')
  request.raw.resume()
}

/**
 * Node's parser rejected the bytes, so Fastify has no request. Writes the response to the socket itself. After an error of
 * the connection or of TLS there is nothing to write to: a response would wait for the end of the handshake.
 */
function answerClientError(context: BrokerContext, error: Error, socket: Socket): void {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (!/^(HPE|ERR_HTTP)_/.test(code) || !socket.writable) {
    socket.destroy()
    return
  }
  const known = new RouseError(
    code === 'HPE_HEADER_OVERFLOW'
      ? 'headers_too_large'
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 'timeout'
        : 'invalid_request',
    `the request is not valid HTTP (${code})`,
  )
  const ids = { requestId: randomUUID(), node: context.config.nodeId }
  const body = JSON.stringify(toProblem(known, ids))
  socket.end(
    `HTTP/1.1 ${known.status} ${statusText(known.status)}\r\n` +
      `content-type: application/problem+json\r\nx-request-id: ${ids.requestId}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

function statusText(status: number): string {
  return status === 431
    ? 'Request Header Fields Too Large'
    : status === 408
      ? 'Request Timeout'
      : 'Bad Request'
}

function newRequestId(_request: IncomingMessage | object): string {
  return randomUUID()
}
