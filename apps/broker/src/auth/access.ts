// Decides who sends a request, in one place, before any code of a route runs.
import type { IncomingHttpHeaders } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { isLoopback } from '@rouse/gossip'
import { RouseError } from '@rouse/protocol'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { ClientCertificates } from './client-certificates.ts'
import type { KeyRing } from './key-ring.ts'
import { IssuerTokens } from './oidc/issuer-tokens.ts'
import { anonymous, type Principal } from './principal.ts'
import { requireCsrfHeader, sessionOf } from './session.ts'
import { createSessions, type SignedIn } from './sign-in.ts'

export interface Access {
  /**
   * The principal of a request with these headers, on this connection. Throws or rejects if it has no valid credential.
   * Only a token that was not seen before takes time. `isChange`: the request changes something, so a session needs
   * the header against forged requests.
   */
  authenticate(
    headers: IncomingHttpHeaders,
    socket: Socket,
    isChange?: boolean,
  ): Principal | Promise<Principal>
  /** Whether requests without credentials are served. */
  isOpen(): boolean
  /** Throws if the request comes from a page of another origin. */
  refuseCrossSite(headers: IncomingHttpHeaders): void
  /** Starts a session for the holder of a key or a token. Throws or rejects if it is not valid. */
  signIn(credential: string): SignedIn | Promise<SignedIn>
}

type Settings = Pick<Config, 'host' | 'insecure' | 'advertiseUrl' | 'allowedHosts' | 'corsOrigins'>

/** Without `certificates`, clients cannot have certificates; without `tokens`, no tokens of an issuer. */
export function createAccess(
  config: Settings,
  ring: KeyRing,
  clock: Clock,
  certificates?: ClientCertificates,
  tokens?: IssuerTokens,
): Access {
  const isOnLoopback = isLoopback(config.host)
  const isAllowedHost = createHostCheck(config)
  const origins = new Set(config.corsOrigins)
  const sessions = createSessions(ring, clock, tokens)

  /** Whether requests without credentials are served. */
  function isOpen(): boolean {
    if (config.insecure) return true
    return isOnLoopback && !ring.hasKeys && certificates === undefined && tokens === undefined
  }

  /**
   * Browsers set this header, and pages cannot change it. A page of the same site has another origin: another name
   * below the same domain, or another port. Browsers give it the cookies and certificates of this node, too.
   */
  function refuseCrossSite(headers: IncomingHttpHeaders): void {
    const site = headers['sec-fetch-site']
    const isOwn = site === undefined || site === 'same-origin' || site === 'none'
    if (isOwn || origins.has(headers.origin ?? '')) return
    throw crossSite()
  }

  /** The principal of the session cookie. An old cookie does not keep anyone out of an open node. */
  function sessionPrincipal(headers: IncomingHttpHeaders, isChange: boolean) {
    const text = ring.hasKeys || tokens !== undefined ? sessionOf(headers) : undefined
    if (text === undefined) return undefined
    try {
      const principal = sessions.find(text)
      if (isChange) requireCsrfHeader(headers)
      return principal
    } catch (error) {
      if (isOpen() && error instanceof RouseError && error.code === 'unauthenticated') {
        return undefined
      }
      throw error
    }
  }

  return {
    isOpen,
    refuseCrossSite,
    signIn: (credential) => sessions.signIn(credential),
    authenticate(headers, socket, isChange = false) {
      const { authorization, host } = headers
      refuseCrossSite(headers)
      const credential = authorization === undefined ? undefined : bearerOf(authorization)
      if (credential?.startsWith('rouse_') === true && ring.hasKeys) return ring.find(credential)
      const node =
        credential?.startsWith('rousenode_') === true ? ring.findNode(credential) : undefined
      if (node !== undefined) return node
      if (credential !== undefined && tokens !== undefined && IssuerTokens.isToken(credential))
        return tokens.find(credential)
      if (authorization === undefined) {
        const session = sessionPrincipal(headers, isChange)
        if (session !== undefined) return session
        const client = certificates?.find(socket, clock.wallMs())
        if (client !== undefined) {
          refuseOtherOrigin(headers, origins)
          return client
        }
      }
      // Other credentials may be for a proxy in front of this node.
      if (!isOpen()) throw unauthenticated(authorization)
      refuseOtherOrigin(headers, origins)
      if (isAllowedHost(host)) return anonymous
      throw new RouseError(
        'forbidden',
        `this node has no name ${JSON.stringify(host)}: set ROUSE_ALLOWED_HOSTS, or use its address`,
      )
    },
  }
}

function bearerOf(header: string): string | undefined {
  // Most clients write it like this, which saves the regular expression.
  if (header.startsWith('Bearer ')) return header.slice(7)
  return /^bearer +(\S+)$/i.exec(header)?.[1]
}

/**
 * For requests that count without a header that only a client of this API sends: other pages can send them, too. Browsers
 * leave `Sec-Fetch-Site` out where a page opens a WebSocket, and on plain HTTP but for loopback. Then the origin must be
 * the one that the request was sent to. A proxy may end TLS, and may leave the port out of `Host`.
 */
function refuseOtherOrigin(headers: IncomingHttpHeaders, allowed: ReadonlySet<string>): void {
  const { origin, host } = headers
  if (origin === undefined || headers['sec-fetch-site'] !== undefined) return
  const sender = origin.replace(/^https?:\/\//, '')
  const isOwn = sender === host || sender.replace(/:\d+$/, '') === host
  if (!isOwn && !allowed.has(origin)) throw crossSite()
}

function crossSite(): RouseError {
  return new RouseError(
    'forbidden',
    'requests from pages of other origins are refused: see ROUSE_CORS_ORIGINS',
  )
}

function unauthenticated(header: string | undefined): RouseError {
  const detail =
    header === undefined
      ? 'this node needs a credential'
      : 'the Authorization header has no credential of this cluster'
  return new RouseError('unauthenticated', `${detail}: send "Authorization: Bearer <API key>"`)
}

const knownHostsMax = 100

/**
 * A page of another site can make its own name resolve to the address of a node, and then counts as the same site
 * for the browser. It still sends its name in the Host header, so a node that serves requests without credentials
 * answers only to names that are its own. Addresses are allowed: no page is loaded from one by accident. The exceptions
 * are addresses that lead to loopback without being one for browsers, which then do not say where a request comes from.
 */
function createHostCheck(
  config: Pick<Config, 'advertiseUrl' | 'allowedHosts'>,
): (host: string | undefined) => boolean {
  const { advertiseUrl, allowedHosts } = config
  const names = new Set(['localhost', ...allowedHosts.map((name) => name.toLowerCase())])
  if (advertiseUrl !== undefined) names.add(new URL(advertiseUrl).hostname.toLowerCase())
  /** Earlier results by Host header: most requests have the same one. */
  const known = new Map<string, boolean>()

  function check(host: string): boolean {
    const name = nameOf(host)
    return isPlainAddress(name) || names.has(name) || name.endsWith('.localhost')
  }

  return (host) => {
    // Browsers always send the header.
    if (host === undefined) return true
    const last = known.get(host)
    if (last !== undefined) return last
    const isAllowed = check(host)
    if (known.size >= knownHostsMax) known.clear()
    known.set(host, isAllowed)
    return isAllowed
  }
}

/** Without port, brackets and the dot of the root. */
function nameOf(host: string): string {
  const name = /^\[(.*)\](?::\d*)?$/.exec(host)?.[1] ?? host.replace(/:\d*$/, '')
  return name.toLowerCase().replace(/\.$/, '')
}

/** Neither 0.0.0.0 and ::, nor an IPv4 address written as one of IPv6. */
function isPlainAddress(name: string): boolean {
  if (isIP(name) === 4) return name !== '0.0.0.0'
  if (isIP(name) !== 6 || !URL.canParse(`http://[${name}]`)) return false
  const { hostname } = new URL(`http://[${name}]`)
  return hostname !== '[::]' && !hostname.startsWith('[::ffff:')
}
