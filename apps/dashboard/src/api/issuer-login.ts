// Signing in with an OIDC issuer: the authorization code flow with PKCE. The page keeps the verifier until the issuer has
// sent the browser back with a code; the node exchanges the code for a session, so the page never has a token.
import { ask } from './client.ts'
import { type Session, session } from './session.ts'

const storageKey = 'rouse-login'

interface Begun {
  readonly state: string
  readonly codeVerifier: string
  /** The page that was open. */
  readonly hash: string
}

/** Leaves the page. */
export async function goToIssuer(authorizationUrl: string): Promise<void> {
  // Browsers have it on https and on this machine only.
  if (globalThis.crypto.subtle === undefined) {
    throw new Error('Signing in this way needs https.')
  }
  const begun: Begun = { state: random(), codeVerifier: random(), hash: location.hash }
  sessionStorage.setItem(storageKey, JSON.stringify(begun))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(begun.codeVerifier))
  const url = new URL(authorizationUrl)
  url.searchParams.set('redirect_uri', redirectUri())
  url.searchParams.set('state', begun.state)
  url.searchParams.set('code_challenge', base64url(new Uint8Array(digest)))
  location.assign(url)
}

/**
 * After the issuer has sent the browser back: starts the session, and removes the code from the address. A code that this
 * page did not ask for is ignored: someone else may have sent the user here with it.
 */
export async function returnFromIssuer(): Promise<void> {
  const query = new URLSearchParams(location.search)
  const text = sessionStorage.getItem(storageKey)
  if (text === null || !query.has('state')) return
  sessionStorage.removeItem(storageKey)
  const { state, codeVerifier, hash } = JSON.parse(text) as Begun
  history.replaceState(null, '', location.pathname)
  // Unlike replaceState, this also fires hashchange, so that the page that was open is shown.
  if (hash !== '') location.replace(hash)
  if (query.get('state') !== state) throw new Error('The issuer answered another request.')
  const code = query.get('code')
  if (code === null) {
    throw new Error(`The issuer refused: ${query.get('error_description') ?? query.get('error')}`)
  }
  const body = { code, codeVerifier, redirectUri: redirectUri() }
  session.set(await ask<Session>('/api/v1/session', { method: 'POST', body }))
}

/** This page, without query and fragment. */
function redirectUri(): string {
  return `${location.origin}${location.pathname}`
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
