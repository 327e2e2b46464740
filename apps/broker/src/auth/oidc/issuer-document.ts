// Reads the public keys of an OIDC issuer: its description first, which names the place of the keys.
import type { JSONWebKeySet } from 'jose'
import { discoveryUrl, isTrustedUrl } from './issuer-url.ts'

const timeoutMs = 5_000
const bytesMax = 1024 * 1024

/** Throws an error with a reason for the log. */
export async function readIssuerKeys(issuer: string, signal: AbortSignal): Promise<JSONWebKeySet> {
  const description = await readJson(discoveryUrl(issuer), signal)
  if (description.issuer !== issuer) {
    const found = JSON.stringify(description.issuer)
    throw new Error(`the issuer describes itself as ${found}: ROUSE_OIDC_ISSUER must be the same`)
  }
  const { jwks_uri: url } = description
  // An issuer with https must not send a node to a place without it.
  const isAllowed = isTrustedUrl(url) && (url.startsWith('https:') || issuer.startsWith('http:'))
  if (!isAllowed) throw new Error('the issuer names no https URL for its keys')
  const { keys } = await readJson(url, signal)
  if (!Array.isArray(keys)) throw new Error('the issuer published no list of keys')
  return { keys: keys.filter(isPublicKey) }
}

/** A key that is shared or private has no place in a published list, and must not verify anything. */
function isPublicKey(key: unknown): key is JSONWebKeySet['keys'][number] {
  if (typeof key !== 'object' || key === null) return false
  const { kty, d } = key as Readonly<Record<string, unknown>>
  return (kty === 'RSA' || kty === 'EC' || kty === 'OKP') && d === undefined
}

async function readJson(
  url: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(url, {
    redirect: 'error',
    headers: { accept: 'application/json' },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  })
  const text = await readText(answer)
  if (!answer.ok) throw new Error(`${url} returned status ${answer.status}`)
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
