// An OIDC issuer on loopback: oidc-provider, with one key for each algorithm.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { Provider } from 'oidc-provider'
import type { Test } from 'tap'

export const audience = 'rouse-test'
const algorithms = ['RS256', 'ES256', 'EdDSA'] as const
export type Algorithm = (typeof algorithms)[number]

export type Claims = Readonly<Record<string, unknown>> & { readonly lifeMs?: number }

export interface TestIssuer {
  readonly url: string
  /** Private, by algorithm. */
  readonly keys: Readonly<Record<Algorithm, JWK>>
  /** The requests so far, by path. */
  readonly counts: Map<string, number>
  /** A token from the token endpoint. `scope` lists grants. */
  request(algorithm: Algorithm, scope: string): Promise<string>
  /** Signs a user in without questions, as a browser would; resolves to where the issuer sends the browser. */
  authorize(url: string): Promise<URL>
  /** Refuses all connections. */
  stop(): Promise<void>
  /** A token with any claims, signed with a key of the issuer. */
  sign(claims?: Claims, algorithm?: Algorithm): Promise<string>
}

export async function startIssuer(t: Test): Promise<TestIssuer> {
  const counts = new Map<string, number>()
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {}
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    counts.set(path, (counts.get(path) ?? 0) + 1)
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = () => closed(server)
  t.teardown(stop)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const keys = Object.fromEntries(
    await Promise.all(algorithms.map(async (alg) => [alg, await newKey(alg)] as const)),
  ) as Record<Algorithm, JWK>
  const provider = createProvider(url, keys)
  const callback = provider.callback()
  handle = (request, response) => {
    if (request.url?.startsWith('/interaction/') === true) {
      const login = { accountId: 'alice' }
      void provider.interactionFinished(request, response, { login })
    } else void callback(request, response)
  }

  return {
    url,
    keys,
    counts,
    stop,
    authorize: (start) => followed(start, url),
    async request(algorithm, scope) {
      const answer = await fetch(`${url}/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: 'service',
          client_secret: 'test',
          resource: `urn:rouse:${algorithm}`,
          scope,
        }),
      })
      const body = (await answer.json()) as Record<string, string>
      if (body.access_token === undefined) throw new Error(JSON.stringify(body))
      return body.access_token
    },
    sign(claims = {}, algorithm = 'ES256') {
      const { lifeMs = 600_000, ...given } = claims
      const exp = Math.floor((Date.now() + lifeMs) / 1_000)
      const standard = { iss: url, aud: audience, sub: 'alice', exp, rouse: ['observe:*'] }
      const { kid } = keys[algorithm] as { kid: string }
      return new SignJWT({ ...standard, ...given })
        .setProtectedHeader({ alg: algorithm, kid })
        .sign(keys[algorithm])
    },
  }
}

export async function newKey(alg: Algorithm, kid: string = alg): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(privateKey)), kid, alg, use: 'sig' }
}

/** Follows redirects within the issuer, with its cookies. */
async function followed(start: string, issuer: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let next = new URL(start)
  while (next.origin === issuer) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(next, { redirect: 'manual', headers: { cookie } })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location === null) throw new Error(`${answer.status} ${await answer.text()}`)
    next = new URL(location, next)
  }
  return next
}

/** The page of a dashboard. */
export const redirectUri = 'http://127.0.0.1/dashboard/'

function createProvider(url: string, keys: Readonly<Record<Algorithm, JWK>>): Provider {
  return new Provider(url, {
    jwks: { keys: Object.values(keys) as never },
    clients: [
      {
        client_id: 'service',
        client_secret: 'test',
        token_endpoint_auth_method: 'client_secret_post',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: 'dashboard',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        redirect_uris: [redirectUri],
        response_types: ['code'],
      },
    ],
    pkce: { required: () => true },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: async ({ oidc }) => {
      const clientId = oidc.client?.clientId
      const accountId = oidc.session?.accountId
      const grant = new oidc.provider.Grant({ clientId, accountId } as never)
      grant.addOIDCScope('openid')
      const resource = oidc.params?.resource
      if (typeof resource === 'string') {
        grant.addResourceScope(resource, 'observe:* pop:orders admin')
      }
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: 'push:orders observe:orders observe:* pop:orders admin',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: resource.split(':')[2] as Algorithm } },
        }),
      },
    },
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
