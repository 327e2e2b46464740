// Starts and finds the sessions of browsers, for holders of API keys and of tokens of an OIDC issuer.
import { RouseError } from '@rouse/protocol'
import type { Clock } from '../clock.ts'
import type { KeyRing } from './key-ring.ts'
import { IssuerTokens } from './oidc/issuer-tokens.ts'
import { findTokenSession, signTokenSession } from './oidc/token-session.ts'
import type { Principal } from './principal.ts'
import { sessionMs } from './session.ts'

export interface SignedIn {
  readonly principal: Principal
  /** The text of the cookie. */
  readonly session: string
  readonly expiresAtMs: number
}

export interface Sessions {
  /** The principal of a session. Throws if it has ended, or if that cannot be known. */
  find(text: string): Principal
  /** Throws or rejects if the key or the token is not valid. */
  signIn(credential: string): SignedIn | Promise<SignedIn>
}

/** Without `tokens`, only keys start sessions. */
export function createSessions(
  ring: KeyRing,
  clock: Clock,
  tokens: IssuerTokens | undefined,
): Sessions {
  const sign = (text: string) => ring.signText(text)

  function byKey(key: string): SignedIn {
    const principal = ring.find(key)
    const { keyId = '' } = principal
    const expiresAtMs = Math.floor(Math.min(clock.wallMs() + sessionMs, ring.endOf(keyId)))
    const session = ring.signSession({ keyId, expiresAtMs })
    if (session === undefined) throw new RouseError('database_unavailable')
    return { principal, session, expiresAtMs }
  }

  async function byToken(token: string, issuer: IssuerTokens): Promise<SignedIn> {
    const found = await issuer.find(token)
    const expiresAtMs = Math.min(clock.wallMs() + sessionMs, found.endsAtMs ?? 0)
    const principal = { ...found, endsAtMs: expiresAtMs }
    return { principal, session: signTokenSession(principal, issuer.source, sign), expiresAtMs }
  }

  return {
    find(text) {
      if (tokens === undefined) return ring.findSession(text)
      return findTokenSession(text, tokens.source, sign, clock.wallMs()) ?? ring.findSession(text)
    },
    signIn(credential) {
      const isToken = tokens !== undefined && IssuerTokens.isToken(credential)
      return isToken ? byToken(credential, tokens) : byKey(credential)
    },
  }
}
