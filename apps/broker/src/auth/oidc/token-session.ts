// Sessions of users of the OIDC issuer: a cookie with who they are, what their token allowed, and until when, signed by
// the cluster. Like the token it cannot be revoked, so it ends with the token, and after 12 hours at the latest.
import { timingSafeEqual } from 'node:crypto'
import { RouseError } from '@rouse/protocol'
import { Grants, parseGrant } from '../grants.ts'
import type { Principal } from '../principal.ts'

const form = /^oidc\.([0-9A-Za-z_-]{1,3700})\.([0-9A-Za-z_-]{43})$/
/** Browsers drop a cookie of more than 4,096 bytes. */
const textLengthMax = 3_700

/** Signs a text with the secret of the cluster, as base64url. Undefined: the secret is not known yet. */
export type Sign = (text: string) => string | undefined

/** `issuer`: whose tokens count, and for whom. Another issuer or audience ends the session. */
export function signTokenSession(
  { name, grants, endsAtMs }: Principal,
  issuer: string,
  sign: Sign,
): string {
  const claims = JSON.stringify([name, endsAtMs, grants.texts])
  const text = Buffer.from(claims, 'utf8').toString('base64url')
  if (text.length > textLengthMax) {
    throw new RouseError('forbidden', 'the token has too many grants for a session: use prefixes')
  }
  const signature = sign(`${issuer} ${text}`)
  if (signature === undefined) throw new RouseError('database_unavailable')
  return `oidc.${text}.${signature}`
}

/** Undefined if the text is not such a session, or has ended. */
export function findTokenSession(
  session: string,
  issuer: string,
  sign: Sign,
  nowMs: number,
): Principal | undefined {
  const [, text, signature] = form.exec(session) ?? []
  if (text === undefined || signature === undefined) return undefined
  const expected = sign(`${issuer} ${text}`)
  if (expected === undefined) throw new RouseError('database_unavailable')
  if (!timingSafeEqual(Buffer.from(signature, 'latin1'), Buffer.from(expected, 'latin1'))) {
    return undefined
  }
  const claims = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown
  const [name, endsAtMs, grants] = claims as [string, number, string[]]
  if (endsAtMs <= nowMs) return undefined
  return { name, endsAtMs, grants: new Grants(grants.map((grant) => parseGrant(grant, 'grants'))) }
}
