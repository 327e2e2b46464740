// Signs a browser in with the OIDC issuer: the authorization code flow with PKCE, for a public client. The page sends the
// user to the issuer, and gets a code back; the node exchanges the code for an access token, which never reaches the page.
import { RouseError, type SessionBody } from '@rouse/protocol'
import { type IssuerDocument, IssuerRefusal, readJson } from './issuer-document.ts'
import { IssuerTokens } from './issuer-tokens.ts'

/** Everyone may send codes, and each costs the issuer a request. */
const runningMax = 10

export class IssuerLogin {
  readonly #clientId: string
  readonly #parameters: URLSearchParams
  #document: IssuerDocument | undefined
  #running = 0

  /** `parameters`: what the page asks the issuer for, as the query of a URL. */
  constructor(clientId: string, parameters: string) {
    this.#clientId = clientId
    this.#parameters = new URLSearchParams(parameters)
  }

  update(document: IssuerDocument | undefined): void {
    this.#document = document ?? this.#document
  }

  /** Where the page sends the user. It adds `redirect_uri`, `state` and `code_challenge`. */
  get url(): string | undefined {
    const { authorizationUrl, tokenUrl } = this.#document ?? {}
    if (authorizationUrl === undefined || tokenUrl === undefined) return undefined
    const url = new URL(authorizationUrl)
    for (const [name, value] of this.#parameters) url.searchParams.append(name, value)
    url.searchParams.set('client_id', this.#clientId)
    url.searchParams.set('response_type', 'code')
    url.searchParams.set('code_challenge_method', 'S256')
    return url.href
  }

  /** The access token for a code. */
  async redeem({ code, codeVerifier, redirectUri }: SessionBody): Promise<string> {
    const { tokenUrl } = this.#document ?? {}
    if (tokenUrl === undefined) throw new RouseError('issuer_unavailable')
    if (this.#running >= runningMax) {
      throw new RouseError('overloaded', 'too many users sign in at once')
    }
    this.#running += 1
    try {
      const form = new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: this.#clientId,
        code: code ?? '',
        code_verifier: codeVerifier ?? '',
        redirect_uri: redirectUri ?? '',
      })
      // RFC 8707: the token is for the API that the user was asked about, and not for another one.
      for (const resource of this.#parameters.getAll('resource')) form.append('resource', resource)
      const answer = await readJson(tokenUrl, new AbortController().signal, form)
      const { access_token: token } = answer
      if (typeof token === 'string' && IssuerTokens.isToken(token)) return token
      throw new RouseError(
        'unauthenticated',
        'the issuer gave no access token (JWT) for this cluster: see ROUSE_OIDC_LOGIN',
      )
    } catch (error) {
      if (error instanceof RouseError) throw error
      if (error instanceof IssuerRefusal) {
        throw new RouseError('unauthenticated', 'the issuer refused the code', { cause: error })
      }
      throw new RouseError('issuer_unavailable', undefined, { cause: error })
    } finally {
      this.#running -= 1
    }
  }
}
