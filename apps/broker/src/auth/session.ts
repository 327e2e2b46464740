// Sessions of browsers. A session is a cookie with a signed text: which API key it stands for, and until when. Any node
// of the cluster can check it, because all nodes know the secret that signs it. It does not contain the key.
//
// A session ends with its key: the key must still be valid, and the signature covers the stored hash of the
// key. The text begins with `key`; the session of a user of an identity provider begins with another word
// (oidc/token-session.ts).
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { csrfHeader, RouseError } from '@rouse/protocol'

export const sessionMs = 12 * 3_600_000
const cookieName = 'rouse_session'
const form = /^key\.([0-9A-Za-z]{12})\.(\d{1,15})\.([0-9A-Za-z_-]{43})$/

/** What a session stands for. */
export interface KeySession {
  readonly keyId: string
  readonly expiresAtMs: number
}

/** What signs a session: the secret of the cluster, and the hash of the key. */
export interface SessionSecrets {
  readonly nodeSecret: Buffer
  readonly keyHash: Buffer
}

export function signSession(session: KeySession, secrets: SessionSecrets): string {
  const { keyId, expiresAtMs } = session
  return `key.${keyId}.${expiresAtMs}.${signature(session, secrets).toString('base64url')}`
}

/** What an unchecked text claims; undefined if it is not a session. */
export function readSession(
  text: string,
): (KeySession & { readonly signature: string }) | undefined {
  const [, keyId, expiresAtMs, signed] = form.exec(text) ?? []
  if (keyId === undefined || signed === undefined) return undefined
  return { keyId, expiresAtMs: Number(expiresAtMs), signature: signed }
}

/**
 * Compares in constant time. Compares texts, not bytes, because several base64 texts decode to the same
 * bytes.
 */
export function isSignedBy(
  session: KeySession & { readonly signature: string },
  secrets: SessionSecrets,
): boolean {
  const shown = Buffer.from(session.signature, 'latin1')
  const expected = Buffer.from(signature(session, secrets).toString('base64url'), 'latin1')
  return shown.length === expected.length && timingSafeEqual(shown, expected)
}

function signature({ keyId, expiresAtMs }: KeySession, secrets: SessionSecrets): Buffer {
  return createHmac('sha256', secrets.nodeSecret)
    .update(`session ${keyId} ${expiresAtMs} `)
    .update(secrets.keyHash)
    .digest()
}

/** The session text of a request; undefined if it has none. */
export function sessionOf({ cookie }: IncomingHttpHeaders): string | undefined {
  if (cookie === undefined) return undefined
  const start = `${cookieName}=`
  const part = cookie.split(/; */).find((one) => one.startsWith(start))
  const text = part?.slice(start.length)
  return text === '' ? undefined : text
}

/** The value of `Set-Cookie`. Without a session it removes the cookie. */
export function sessionCookie(
  session: { readonly text: string; readonly maxAgeMs: number } | undefined,
  { path, isSecure }: { readonly path: string; readonly isSecure: boolean },
): string {
  const { text, maxAgeMs } = session ?? { text: '', maxAgeMs: 0 }
  const parts = [
    `${cookieName}=${text}`,
    `Path=${path}`,
    `Max-Age=${Math.floor(maxAgeMs / 1_000)}`,
    'HttpOnly',
    'SameSite=Strict',
    ...(isSecure ? ['Secure'] : []),
  ]
  return parts.join('; ')
}

/** Browsers add the cookie to requests of other pages of the site, but those pages cannot add this header. */
export function requireCsrfHeader(headers: IncomingHttpHeaders): void {
  if (headers[csrfHeader] !== undefined) return
  throw new RouseError(
    'forbidden',
    `a request with a session cookie that changes something needs the header ${csrfHeader}`,
  )
}
