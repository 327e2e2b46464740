// Signs browsers in and out. `GET` shows who sends the request, and never fails because there is no credential: the
// dashboard asks it first, to decide whether to show its form.
//
// A session is started with an API key, or with a code of the OIDC issuer.
import { fieldError, RouseError, type SessionAnswer, type SessionBody } from '@rouse/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../../auth/principal.ts'
import { sessionCookie } from '../../auth/session.ts'
import type { BrokerContext } from '../../worker/context.ts'

/** Everyone may send this request. */
const bodyLimit = 16_384

export function sessionRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { access, clock, config, issuerLogin } = context

  app.post('/api/v1/session', { bodyLimit }, async (request, reply): Promise<SessionAnswer> => {
    access.refuseCrossSite(request.headers)
    const credential = await credentialOf(request.body as SessionBody)
    const { principal, session, expiresAtMs } = await access.signIn(credential)
    setCookie(request, reply, { text: session, maxAgeMs: expiresAtMs - clock.wallMs() })
    request.principal = principal
    return describe(principal, expiresAtMs)
  })

  app.get('/api/v1/session', async (request, reply): Promise<SessionAnswer> => {
    reply.header('cache-control', 'no-store')
    return describe(await principalOf(request))
  })

  app.delete('/api/v1/session', async (request, reply): Promise<SessionAnswer> => {
    access.refuseCrossSite(request.headers)
    setCookie(request, reply, undefined)
    return describe(undefined)
  })

  /** The API key, or the token for the code. */
  async function credentialOf(body: SessionBody): Promise<string> {
    const { key, code, codeVerifier, redirectUri } = body
    if (key !== undefined && code === undefined) return key.trim()
    if (key !== undefined || code === undefined) {
      throw fieldError('invalid_request', 'key', 'or code must be given, and not both')
    }
    if (codeVerifier === undefined || redirectUri === undefined) {
      throw fieldError('invalid_request', 'codeVerifier', 'and redirectUri must be given with code')
    }
    if (issuerLogin !== undefined) return issuerLogin.redeem(body)
    throw fieldError('invalid_request', 'code', 'needs ROUSE_OIDC_CLIENT_ID on this node')
  }

  /** Undefined if the request has no valid credential. */
  async function principalOf({ headers, raw }: FastifyRequest): Promise<Principal | undefined> {
    try {
      return await access.authenticate(headers, raw.socket)
    } catch (error) {
      if (error instanceof RouseError && error.code === 'unauthenticated') return undefined
      throw error
    }
  }

  function setCookie(
    request: FastifyRequest,
    reply: FastifyReply,
    session: Parameters<typeof sessionCookie>[0],
  ): void {
    // Behind a balancer that ends TLS, its header says how the browser is connected. A forged one costs the forger
    // nothing but their own session.
    const isSecure =
      request.protocol === 'https' || request.headers['x-forwarded-proto'] === 'https'
    const path = config.basePath === undefined ? '/' : config.basePath
    reply.header('cache-control', 'no-store')
    reply.header('set-cookie', sessionCookie(session, { path, isSecure }))
  }

  function describe(
    principal: Principal | undefined,
    expiresAtMs = principal?.endsAtMs,
  ): SessionAnswer {
    const authorizationUrl = issuerLogin?.url ?? null
    return {
      principal: principal?.name ?? null,
      grants: principal?.grants.texts ?? [],
      keyId: principal?.keyId ?? null,
      expiresAt: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
      isOpen: access.isOpen(),
      signInWith: authorizationUrl === null ? ['key'] : ['key', 'oidc'],
      authorizationUrl,
    }
  }
}
