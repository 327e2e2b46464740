import { IssuerLogin } from '../auth/oidc/issuer-login.ts'
import { IssuerTokens } from '../auth/oidc/issuer-tokens.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Outbox, PrimaryMessage, WorkerMessage } from '../ipc.ts'

export interface IssuerClient {
  /** Undefined if the node accepts no tokens of an issuer. */
  readonly tokens: IssuerTokens | undefined
  /** Undefined if browsers cannot sign in with the issuer. */
  readonly login: IssuerLogin | undefined
  /** Resolves when the primary has read the keys of the issuer, or could not. */
  start(): Promise<void>
  received(message: Extract<PrimaryMessage, { readonly type: 'issuer' }>): void
}

/** Keeps the keys of the OIDC issuer in a worker up to date. The primary reads them. */
export function createIssuerClient(
  config: Pick<Config, 'oidcIssuer' | 'oidcAudience' | 'oidcClientId' | 'oidcLogin'>,
  outbox: Outbox<WorkerMessage>,
  clock: Clock,
): IssuerClient {
  const { oidcIssuer: issuer, oidcAudience: audience, oidcClientId, oidcLogin } = config
  const asked = new Map<number, () => void>()
  let lastId = 0

  function ask(isUnknownKey: boolean): Promise<void> {
    lastId += 1
    const id = lastId
    const answered = new Promise<void>((resolve) => asked.set(id, resolve))
    outbox.post({ type: 'askIssuer', id, isUnknownKey })
    return answered
  }

  const tokens =
    issuer === undefined || audience === undefined
      ? undefined
      : new IssuerTokens({ issuer, audience, clock, lookAgain: () => ask(true) })

  const login = oidcClientId === undefined ? undefined : new IssuerLogin(oidcClientId, oidcLogin)

  return {
    tokens,
    login,
    start: () => (tokens === undefined ? Promise.resolve() : ask(false)),
    received({ document, id }) {
      tokens?.update(document?.keys)
      login?.update(document)
      if (id === undefined) return
      asked.get(id)?.()
      asked.delete(id)
    },
  }
}
