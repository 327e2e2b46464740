// Access tokens (JWT) of an OIDC issuer. A token is verified once, and then known by its SHA-256 until it expires or
// the keys of the issuer change, so a request with a known token needs no signature check.
import { createHash } from 'node:crypto'
import { RouseError } from '@rouse/protocol'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../clock.ts'
import { type Grant, Grants, grantsMax, parseGrant } from '../grants.ts'
import type { Principal } from '../principal.ts'

/** The list has no symmetric algorithm, because a public key must never serve as a shared secret. */
const algorithms = ['EdDSA', 'ES256', 'RS256']
const tokenLengthMax = 8_192
const knownMax = 10_000
/** The most that the clocks of the issuer and of a node may differ. */
const toleranceSeconds = 5
const nameLengthMax = 200

export interface IssuerTokensOptions {
  readonly issuer: string
  readonly audience: string
  readonly clock: Clock
  /** Asks the primary to read the keys again. Resolves after `update`, if they have changed. */
  readonly lookAgain: () => Promise<void>
}

export class IssuerTokens {
  readonly #options: IssuerTokensOptions
  #findKey: ReturnType<typeof createLocalJWKSet> | undefined
  #keysText = ''
  #known = new Map<string, Principal>()
  #looking: Promise<void> | undefined

  constructor(options: IssuerTokensOptions) {
    this.#options = options
  }

  /** Whose tokens count, and for whom. */
  get source(): string {
    return `${this.#options.issuer} ${this.#options.audience}`
  }

  /** Three parts, of which the first is a JSON object. */
  static isToken(credential: string): boolean {
    return credential.startsWith('ey') && credential.includes('.')
  }

  /** The keys of the issuer. Undefined: they could not be read yet. */
  update(keys: JSONWebKeySet | undefined): void {
    if (keys === undefined) return
    const text = JSON.stringify(keys)
    // Tokens with unknown keys must not make this worker forget the known ones.
    if (text === this.#keysText) return
    this.#keysText = text
    this.#findKey = createLocalJWKSet(keys)
    this.#known = new Map()
  }

  /** At once for a token that was verified before. Throws or rejects if the token is not valid. */
  find(token: string): Principal | Promise<Principal> {
    if (token.length > tokenLengthMax) throw invalid(`is longer than ${tokenLengthMax} characters`)
    const digest = createHash('sha256').update(token).digest('base64')
    const known = this.#known.get(digest)
    if (known === undefined) return this.#verify(token, digest)
    if ((known.endsAtMs ?? 0) > this.#options.clock.wallMs()) return known
    this.#known.delete(digest)
    throw invalid('has expired')
  }

  async #verify(token: string, digest: string): Promise<Principal> {
    try {
      return await this.#verifyNow(token, digest)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw refusalOf(error)
    }
    this.#looking ??= this.#options.lookAgain().finally(() => {
      this.#looking = undefined
    })
    await this.#looking
    try {
      return await this.#verifyNow(token, digest)
    } catch (error) {
      throw refusalOf(error)
    }
  }

  async #verifyNow(token: string, digest: string): Promise<Principal> {
    const { issuer, audience, clock } = this.#options
    const findKey = this.#findKey
    if (findKey === undefined) throw new RouseError('issuer_unavailable')
    const { payload } = await jwtVerify(token, findKey, {
      issuer,
      audience,
      algorithms,
      requiredClaims: ['exp', 'sub'],
      clockTolerance: toleranceSeconds,
      currentDate: new Date(clock.wallMs()),
    })
    const principal = principalOf(payload)
    // The keys may have changed during the check. Then the next request checks the token again.
    if (findKey === this.#findKey) this.#remember(digest, principal)
    return principal
  }

  /** At the limit, the token that was verified first is forgotten. */
  #remember(digest: string, principal: Principal): void {
    if (this.#known.size >= knownMax) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    this.#known.set(digest, principal)
  }
}

/** The prefix keeps the name apart from those of API keys, certificates and nodes. */
function principalOf({ sub = '', exp = 0, rouse, scope }: JWTPayload): Principal {
  return {
    name: `oidc:${sub.slice(0, nameLengthMax)}`,
    grants: new Grants(rouse === undefined ? grantsOfScope(scope) : grantsOf(rouse)),
    endsAtMs: (exp + toleranceSeconds) * 1_000,
  }
}

/** A grant that this release does not know allows nothing. */
function grantsOf(claim: unknown): Grant[] {
  if (!Array.isArray(claim)) return []
  if (claim.length > grantsMax) throw invalid(`has more than ${grantsMax} grants`)
  return claim.flatMap(readGrant)
}

/**
 * Most scopes have nothing to do with Rouse, and issuers often have one that is called `admin`. So that grant can only
 * come from the claim `rouse`.
 */
function grantsOfScope(scope: unknown): Grant[] {
  if (typeof scope !== 'string') return []
  const words = scope.split(' ').filter((word) => word.includes(':'))
  return grantsOf(words)
}

function readGrant(text: unknown): Grant[] {
  try {
    return [parseGrant(text, 'grants')]
  } catch {
    return []
  }
}

function refusalOf(error: unknown): Error {
  if (error instanceof RouseError) return error
  if (error instanceof errors.JWTExpired) return invalid('has expired')
  if (error instanceof errors.JWTClaimValidationFailed) {
    return invalid(`has no valid claim "${error.claim}"`)
  }
  // Among the others are errors of keys that the issuer publishes and that cannot be used.
  return invalid('is not one of the issuer of this cluster', error)
}

function invalid(why: string, cause?: unknown): RouseError {
  return new RouseError('unauthenticated', `the access token ${why}`, { cause })
}
