// Decides who sends a request, in one place, before any code of a route runs.
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { isLoopback } from '@rouse/gossip'
import { RouseError } from '@rouse/protocol'
import type { Config } from '../config/config.ts'
import { createHostCheck } from './allowed-hosts.ts'
import type { ClientCertificates } from './client-certificates.ts'
import type { KeyRing } from './key-ring.ts'
import { anonymous, type Principal } from './principal.ts'

export interface Access {
  /** The principal of a request with these headers, on this connection. Throws if it has no valid credential. */
  authenticate(headers: IncomingHttpHeaders, socket: Socket): Principal
}

type Settings = Pick<Config, 'host' | 'insecure' | 'advertiseUrl' | 'allowedHosts'>

/** `certificates` is undefined if clients cannot have certificates. */
export function createAccess(
  config: Settings,
  ring: KeyRing,
  certificates?: ClientCertificates,
): Access {
  const isOnLoopback = isLoopback(config.host)
  const isAllowedHost = createHostCheck(config)

  /** Whether requests without credentials are served. */
  function isOpen(): boolean {
    return config.insecure || (isOnLoopback && !ring.hasKeys && certificates === undefined)
  }

  return {
    authenticate(headers, socket) {
      const { authorization, host } = headers
      // Browsers set this header, and pages cannot change it.
      if (headers['sec-fetch-site'] === 'cross-site') {
        throw new RouseError('forbidden', 'requests from pages of other web sites are refused')
      }
      const credential = authorization === undefined ? undefined : bearerOf(authorization)
      if (credential?.startsWith('rouse_') === true && ring.hasKeys) return ring.find(credential)
      const node =
        credential?.startsWith('rousenode_') === true ? ring.findNode(credential) : undefined
      if (node !== undefined) return node
      const client = authorization === undefined ? certificates?.find(socket) : undefined
      if (client !== undefined) return client
      // Other credentials may be for a proxy in front of this node.
      if (!isOpen()) throw unauthenticated(authorization)
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

function unauthenticated(header: string | undefined): RouseError {
  const detail =
    header === undefined
      ? 'this node needs a credential'
      : 'the Authorization header has no API key of this cluster'
  return new RouseError('unauthenticated', `${detail}: send "Authorization: Bearer <API key>"`)
}
