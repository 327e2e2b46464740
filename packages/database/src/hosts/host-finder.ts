// Finds, among the servers of a target, the one that accepts writes.
//
//   known     a search has found the server: all callers use it
//   suspect   the server has failed: the next caller starts a search, and all others wait for that search
//
// A search connects to all hosts at once, because one of them may be silent. A host that refused is tried
// again after a pause, because a standby may be promoted meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { ConnectionTarget, DatabaseHost } from './connection-target.ts'
import { DatabaseHostError } from './database-host-error.ts'
import { HostClient } from './host-client.ts'

export interface HostFinderOptions {
  readonly target: ConnectionTarget
  readonly clientConfig: pg.ClientConfig
  /** The maximum duration of a search. */
  readonly searchMsMax: number
  /** From 0 to 1, for jitter: many processes search at the same time and must not retry in step. */
  readonly random: () => number
  readonly onFound?: (host: DatabaseHost) => void
}

const askAgainMs = 250

export class HostFinder {
  readonly #options: HostFinderOptions
  readonly #first: DatabaseHost
  #known: DatabaseHost | undefined
  #search: Promise<DatabaseHost> | undefined

  constructor(options: HostFinderOptions) {
    this.#options = options
    this.#first = options.target.hosts[0] as DatabaseHost
    if (!this.hasSeveral) this.#known = this.#first
  }

  get hasSeveral(): boolean {
    return this.#options.target.hosts.length > 1
  }

  get isKnown(): boolean {
    return this.#known !== undefined
  }

  /** The host to connect to. Until a search has found one, this is the first host of the target. */
  get best(): DatabaseHost {
    return this.#known ?? this.#first
  }

  /** Whether connections to this host should be closed. */
  isAbandoned(host: DatabaseHost): boolean {
    return this.#known !== undefined && this.#known !== host
  }

  suspect(host: DatabaseHost): void {
    if (this.hasSeveral && this.#known === host) this.#known = undefined
  }

  async find(): Promise<DatabaseHost> {
    if (this.#known !== undefined) return this.#known
    this.#search ??= this.#searchAll().finally(() => {
      this.#search = undefined
    })
    return this.#search
  }

  async #searchAll(): Promise<DatabaseHost> {
    const { target, searchMsMax, onFound } = this.#options
    const over = new AbortController()
    const refusals = new Map<DatabaseHost, unknown>()
    const timer = setTimeout(() => over.abort(), searchMsMax)
    try {
      const found = await Promise.any(
        target.hosts.map((host) =>
          this.#askUntilGood(host, over.signal, (refusal) => {
            refusals.set(host, refusal)
            // All hosts answered and none is usable: the caller decides when to search again.
            if (refusals.size === target.hosts.length) over.abort()
          }),
        ),
      )
      this.#known = found
      onFound?.(found)
      return found
    } catch {
      const causes = [...refusals.values()]
      const reasons = causes.map((cause) => (cause as Error).message || String(cause)).join('; ')
      const message = `no server accepts writes: ${reasons || 'none answered'}`
      throw new DatabaseHostError('no_writable_server', message, {
        cause: new AggregateError(causes),
      })
    } finally {
      clearTimeout(timer)
      over.abort()
    }
  }

  async #askUntilGood(
    host: DatabaseHost,
    over: AbortSignal,
    onRefusal: (refusal: unknown) => void,
  ): Promise<DatabaseHost> {
    for (;;) {
      try {
        await this.#ask(host, over)
        return host
      } catch (refusal) {
        over.throwIfAborted()
        onRefusal(refusal)
        over.throwIfAborted()
        const pauseMs = askAgainMs * (0.5 + this.#options.random())
        await delay(pauseMs, undefined, { signal: over })
      }
    }
  }

  async #ask(server: DatabaseHost, over: AbortSignal): Promise<void> {
    const { clientConfig, target } = this.#options
    const { readWrite } = target
    const client = new HostClient(clientConfig, { server, readWrite, keepSettings: true })
    client.on('error', () => {})
    const abandon = () => client.abandon()
    over.addEventListener('abort', abandon)
    try {
      await client.connect()
      client.end().catch(() => {})
    } finally {
      over.removeEventListener('abort', abandon)
    }
  }
}
