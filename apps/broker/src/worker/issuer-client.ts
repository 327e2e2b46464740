import { IssuerTokens } from '../auth/oidc/issuer-tokens.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Outbox, PrimaryMessage, WorkerMessage } from '../ipc.ts'

export interface IssuerClient {
  /** Undefined if the node accepts no tokens of an issuer. */
  readonly tokens: IssuerTokens | undefined
  /** Resolves when the primary has read the keys of the issuer, or could not. */
  start(): Promise<void>
  received(message: Extract<PrimaryMessage, { readonly type: 'issuer' }>): void
}

/** Keeps the keys of the OIDC issuer in a worker up to date. The primary reads them. */
export function createIssuerClient(
  { oidcIssuer: issuer, oidcAudience: audience }: Pick<Config, 'oidcIssuer' | 'oidcAudience'>,
  outbox: Outbox<WorkerMessage>,
  clock: Clock,
): IssuerClient {
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

  return {
    tokens,
    start: () => (tokens === undefined ? Promise.resolve() : ask(false)),
    received({ keys, id }) {
      tokens?.update(keys)
      if (id === undefined) return
      asked.get(id)?.()
      asked.delete(id)
    },
  }
}
