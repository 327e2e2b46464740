// The HTTP server of a worker: everything that applies to all routes.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { RouseError } from '@rouse/protocol'
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  fastify,
} from 'fastify'
import { unknown } from '../auth/principal.ts'
import { registerRoutes } from '../routes/routes.ts'
import type { BrokerContext } from '../worker/context.ts'
import { methodsByPath } from './allowed-methods.ts'
import { auditActions } from './audit.ts'
import { enforceGrants } from './authorization.ts'
import { allowOrigins } from './cors.ts'
import { answerClientError, sendProblem } from './error-answers.ts'
import { parseJsonBody } from './json-body.ts'
import { applyRequestSchemas, encodingFault } from './request-schemas.ts'
import type { TlsOptions } from './tls.ts'
import { createFaultFinder, type FaultFinder } from './validation-errors.ts'

const requestTimeoutMs = 60_000
const keepAliveTimeoutMs = 65_000
const timeoutCheckMs = 2_000
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
    ajv: validatorOptions(faults),
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
    // Few URLs have a `%`.
    done(request.url.includes('%') ? encodingFault(request.url) : undefined)
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

/** A value of another type is refused, and nothing is added to a body or removed from it. */
function validatorOptions(faults: FaultFinder): FastifyServerOptions['ajv'] {
  return {
    customOptions: {
      coerceTypes: false,
      useDefaults: false,
      removeAdditional: false,
      strict: false,
    },
    onCreate(validator) {
      compileOnFirstUse(validator)
      faults.use(validator)
    },
  }
}

export interface SchemaCompiler {
  compile(schema: object): SchemaCheck
}

export type SchemaCheck = ((value: unknown) => unknown) & { errors?: unknown }

/**
 * Makes the validator compile a schema when it is first used. There are about 250 schemas, and a worker that
 * compiles all of them takes twice as long to start. Most workers use few of them; the first call of a route
 * takes some milliseconds longer.
 */
export function compileOnFirstUse(compiler: SchemaCompiler): void {
  const compile = compiler.compile.bind(compiler)
  compiler.compile = (schema) => {
    let compiled: SchemaCheck | undefined
    const check: SchemaCheck = (value) => {
      compiled ??= compile(schema)
      const result = compiled(value)
      check.errors = compiled.errors
      return result
    }
    return check
  }
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

function newRequestId(_request: IncomingMessage | object): string {
  return randomUUID()
}
