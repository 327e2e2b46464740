// Clients that are known by a certificate. The file of ROUSE_TLS_CLIENT_GRANTS maps subject alternative names to grants:
//
//   { "DNS:worker.orders.internal": ["pop:orders", "push:mail"], "URI:spiffe://shop/viewer": ["observe:*"] }
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { ConfigError } from '../config/config-error.ts'
import { type Grant, Grants, grantsMax, parseGrant } from './grants.ts'
import type { Principal } from './principal.ts'

const setting = 'ROUSE_TLS_CLIENT_GRANTS'

export class ClientCertificates {
  #principals: ReadonlyMap<string, Principal> = new Map()
  /** By connection; undefined if its certificate is not valid or has no grants. */
  #known = new WeakMap<Socket, { readonly principal: Principal | undefined }>()

  /** `text` is the content of the file. Connections get the new grants at once. */
  update(text: string): void {
    this.#principals = readPrincipals(text)
    this.#known = new WeakMap()
  }

  /** A connection may stay open for longer than its certificate is valid. `nowMs` is since 1970. */
  find(socket: Socket, nowMs: number): Principal | undefined {
    const { principal } = this.#known.get(socket) ?? { principal: this.#read(socket) }
    this.#known.set(socket, { principal })
    return (principal?.endsAtMs ?? 0) > nowMs ? principal : undefined
  }

  #read(socket: Socket): Principal | undefined {
    // `authorized`: the certificate was signed by the client CA, and was valid when the connection began.
    if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
    const certificate = socket.getPeerX509Certificate()
    for (const name of alternativeNames(certificate?.subjectAltName)) {
      const principal = this.#principals.get(name)
      const endsAtMs = Date.parse(certificate?.validTo ?? '')
      if (principal !== undefined) return { ...principal, endsAtMs }
    }
    return undefined
  }
}

/** Names with special characters come quoted, and might be read as several names: they are ignored. */
export function alternativeNames(text: string | undefined): string[] {
  if (text === undefined || text.includes('"')) return []
  return text.split(', ')
}

function readPrincipals(text: string): ReadonlyMap<string, Principal> {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new ConfigError(setting, 'names a file that is not JSON')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new ConfigError(setting, 'must map names of certificates to lists of grants')
  }
  return new Map(
    Object.entries(parsed).map(([name, grants]) => [
      name,
      { name, grants: readGrants(name, grants) },
    ]),
  )
}

function readGrants(name: string, grants: unknown): Grants {
  if (!/^(DNS|URI|email|IP Address):./.test(name)) {
    throw new ConfigError(
      setting,
      `has ${JSON.stringify(name)}, which does not begin with DNS:, URI:, email: or IP Address:`,
    )
  }
  if (!Array.isArray(grants) || grants.length > grantsMax) {
    throw new ConfigError(setting, `must have a list of at most ${grantsMax} grants for ${name}`)
  }
  try {
    return new Grants(grants.map((grant): Grant => parseGrant(grant, 'grant')))
  } catch (error) {
    throw new ConfigError(setting, `has an invalid grant for ${name}: ${(error as Error).message}`)
  }
}
