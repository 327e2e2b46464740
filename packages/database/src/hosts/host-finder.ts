// Knows which server of a target takes writes.
//
//   known     the last one that was found good: everybody goes there
//   doubted   it failed somebody: the next who asks starts a search, all others wait for that one
//
// A search asks all hosts at once, because one of them may be silent, and those that said no again
// and again while it is: a standby is promoted meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { ConnectionTarget, DatabaseHost } from './connection-target.ts'
import { DatabaseHostError } from './database-host-error.ts'
import { HostClient } from './host-client.ts'

export interface HostFinderOptions {
  readonly target: ConnectionTarget
  readonly clientConfig: pg.ClientConfig
  /** A search that found nothing ends after this. */
  readonly searchMsMax: number
  /** From 0 to 1: many processes search at the same time, and must not ask in step. */
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

  /** Where to connect to; a guess while nothing is known. */
  get best(): DatabaseHost {
    return this.#known ?? this.#first
  }

  /** Whether a connection to this one is no longer wanted. */
  isPassedOver(host: DatabaseHost): boolean {
    return this.#known !== undefined && this.#known !== host
  }

  doubt(host: DatabaseHost): void {
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
            // Everybody has answered, and nobody is good: whoever asked decides when to ask again.
            if (refusals.size === target.hosts.length) over.abort()
          }),
        ),
      )
      this.#known = found
      onFound?.(found)
      return found
    } catch {
      const causes = [...refusals.values()]
      const words = causes.map((cause) => (cause as Error).message || String(cause)).join('; ')
      const message = `no server takes writes: ${words || 'none answers'}`
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
