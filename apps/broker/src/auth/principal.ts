import { type KeyLimits, verbs } from '@rouse/protocol'
import { Grants, parseGrant } from './grants.ts'

/** The sender of a request. */
export interface Principal {
  readonly name: string
  readonly grants: Grants
  /** The id of the API key; undefined if the request has none. */
  readonly keyId?: string | undefined
  /** When a token, a session or a certificate ends, in milliseconds since 1970. The ring knows when a key ends. */
  readonly endsAtMs?: number | undefined
  /** Undefined: none. */
  readonly limits?: KeyLimits | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal
  }
}

const everything = new Grants(
  verbs.map((verb) => parseGrant(verb === 'admin' ? verb : `${verb}:*`, 'grants')),
)

/** The sender of a request without credentials, where such requests are served. */
export const anonymous: Principal = { name: 'anonymous', grants: everything }

/** The sender before a credential was checked, and where none is needed. */
export const unknown: Principal = { name: 'unknown', grants: new Grants([]) }

/** Another node of the cluster, which asks for stats. */
export const peerNode: Principal = {
  name: 'node',
  grants: new Grants([{ verb: 'observe', pattern: '*' }]),
}
