// An OIDC issuer on loopback with a form for signing in, for one dashboard.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { Test } from 'tap'

export const audience = 'rouse-dashboard'
export const clientId = 'dashboard'
/** For ROUSE_OIDC_LOGIN. */
export const login = 'scope=openid observe:* peek:*&resource=urn:rouse'
const form = '<form method="post"><button>I am Alice</button></form>'

export async function startIssuer(t: Test, redirectUri: string): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(url, {
    clients: [
      {
        client_id: clientId,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        redirect_uris: [redirectUri],
        response_types: ['code'],
      },
    ],
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: async ({ oidc }) => {
      const { accountId } = oidc.session ?? {}
      const grant = new oidc.provider.Grant({ clientId, accountId } as never)
      grant.addOIDCScope('openid')
      grant.addResourceScope('urn:rouse', 'observe:* peek:*')
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'observe:* peek:*',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
  const callback = provider.callback()
  server.on('request', (request, response) => {
    if (request.url === '/favicon.ico') return void response.writeHead(204).end()
    if (request.url?.startsWith('/interaction/') !== true) return void callback(request, response)
    if (request.method === 'POST') {
      return void provider.interactionFinished(request, response, { login: { accountId: 'alice' } })
    }
    response.setHeader('content-type', 'text/html').end(form)
  })
  return url
}
