// Reads what an OIDC issuer publishes: its description, and its public keys, whose place the description names.
import { isLoopback } from '@rouse/gossip'
import type { JSONWebKeySet } from 'jose'

const timeoutMs = 5_000
const bytesMax = 1024 * 1024

export interface IssuerDocument {
  readonly keys: JSONWebKeySet
  /** Where users sign in, and where their codes become tokens. Undefined if the issuer has no such place. */
  readonly authorizationUrl: string | undefined
  readonly tokenUrl: string | undefined
}

/** Throws an error with a reason for the log. */
export async function readIssuer(issuer: string, signal: AbortSignal): Promise<IssuerDocument> {
  const description = await readJson(discoveryUrl(issuer), signal)
  if (description.issuer !== issuer) {
    const found = JSON.stringify(description.issuer)
    throw new Error(`the issuer describes itself as ${found}: ROUSE_OIDC_ISSUER must be the same`)
  }
  const url = trusted(description.jwks_uri, issuer)
  if (url === undefined) throw new Error('the issuer names no https URL for its keys')
  const { keys } = await readJson(url, signal)
  if (!Array.isArray(keys)) throw new Error('the issuer published no list of keys')
  return {
    keys: { keys: keys.filter(isPublicKey) },
    authorizationUrl: trusted(description.authorization_endpoint, issuer),
    tokenUrl: trusted(description.token_endpoint, issuer),
  }
}

/** Where an issuer describes itself. */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** Whether a URL may be trusted to answer for an issuer: https, or http on this machine. */
export function isTrustedUrl(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  if (protocol === 'https:') return true
  return protocol === 'http:' && isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))
}

/** An issuer with https must not send a node, or a browser, to a place without it. */
function trusted(url: unknown, issuer: string): string | undefined {
  if (!isTrustedUrl(url)) return undefined
  return url.startsWith('https:') || issuer.startsWith('http:') ? url : undefined
}

/** A key that is shared or private has no place in a published list, and must not verify anything. */
function isPublicKey(key: unknown): key is JSONWebKeySet['keys'][number] {
  if (typeof key !== 'object' || key === null) return false
  const { kty, d } = key as Readonly<Record<string, unknown>>
  return (kty === 'RSA' || kty === 'EC' || kty === 'OKP') && d === undefined
}

/** The issuer answered, but with an error. */
export class IssuerRefusal extends Error {}

/** With a form, the request is a POST. */
export async function readJson(
  url: string,
  signal: AbortSignal,
  form?: URLSearchParams,
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(url, {
    ...(form === undefined ? {} : { method: 'POST', body: form }),
    redirect: 'error',
    headers: { accept: 'application/json' },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  })
  const text = await readText(answer)
  if (!answer.ok) throw new IssuerRefusal(`${url} returned status ${answer.status}`)
  const value: unknown = JSON.parse(text)
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  throw new Error(`${url} returned no JSON object`)
}

async function readText(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > bytesMax) throw new Error(`${answer.url} returned more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
