// Turns configured peers into addresses. A peer is configured as `10.0.0.5:4601`, `rouse.internal:4601` or
// `srv:_gossip._udp.rouse.internal`. Every address of a name counts, so one name can stand for all nodes.
// Names are resolved repeatedly, and more often while this node has no members.
import { setTimeout as delay } from 'node:timers/promises'
import { type Address, normalAddress } from '../transport/address.ts'
import { candidatesMax } from './candidates.ts'
import { isName, NameLookup, type NameService } from './name-lookup.ts'

const resolveEveryMs = 15_000
const resolveEveryAloneMs = 1_000
/** More names are ignored: there is no room for their addresses among the candidates. */
const namesMax = candidatesMax
const resolvedAtOnce = 32
/** How long a stop waits for a lookup that cannot be cancelled. */
const stopMsMax = 500

export interface DiscoveryOptions {
  readonly names: NameService
  readonly random: () => number
  /** Whether this node has no members. */
  readonly isAlone: () => boolean
  readonly onAddresses: (source: string, addresses: readonly Address[]) => void
}

export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #sources = new Map<string, readonly string[]>()
  readonly #lookup: NameLookup
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  #resolving: Promise<void> | undefined
  /** A name was added while others were being resolved. */
  #isDueAgain = false

  constructor(options: DiscoveryOptions) {
    this.#options = options
    this.#lookup = new NameLookup(options.names)
  }

  /** The list from one source. Numeric addresses are tried at once, names when they are resolved. */
  set(source: string, texts: readonly string[]): void {
    this.#sources.set(source, texts)
    this.#tell(source, texts)
    const names = this.#names()
    const isUnknown = (name: string) => this.#lookup.addressesOf(name).length === 0
    // Without names the timer stops. A name that is listed after that must be resolved even if there is an
    // earlier result, which may be old.
    const isIdle = this.#timer === undefined && this.#resolving === undefined
    if (isIdle ? names.length > 0 : names.some(isUnknown)) this.#resolveSoon(0)
  }

  start(): void {
    this.#isRunning = true
    if (this.#names().length > 0) this.#resolveSoon(0)
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    clearTimeout(this.#timer)
    if (this.#resolving === undefined) return
    this.#options.names.cancel?.()
    const ending = new AbortController()
    const late = delay(stopMsMax, undefined, ending).catch(() => undefined)
    await Promise.race([this.#resolving, late])
    ending.abort()
  }

  #resolveSoon(afterMs: number): void {
    if (!this.#isRunning) return
    if (this.#resolving !== undefined) {
      this.#isDueAgain = true
      return
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#isDueAgain = false
      this.#resolving = this.#resolveAll().finally(() => {
        this.#resolving = undefined
        if (this.#names().length > 0) this.#resolveSoon(this.#isDueAgain ? 0 : this.#pauseMs())
      })
    }, afterMs)
  }

  #pauseMs(): number {
    const everyMs = this.#options.isAlone() ? resolveEveryAloneMs : resolveEveryMs
    return everyMs * (0.8 + 0.4 * this.#options.random())
  }

  async #resolveAll(): Promise<void> {
    const names = this.#names()
    this.#lookup.forgetAllBut(names)
    const left = names.values()
    await Promise.all(Array.from({ length: resolvedAtOnce }, () => this.#resolveEach(left)))
    if (!this.#isRunning) return
    for (const [source, texts] of this.#sources) this.#tell(source, texts)
  }

  /** One of several concurrent loops that take names from the same iterator. */
  async #resolveEach(left: Iterator<string>): Promise<void> {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      if (!this.#isRunning) return
      await this.#lookup.ask(next.value)
    }
  }

  #tell(source: string, texts: readonly string[]): void {
    const addresses = texts.flatMap((text) => {
      return isName(text) ? this.#lookup.addressesOf(text) : (normalAddress(text) ?? [])
    })
    this.#options.onAddresses(source, addresses)
  }

  #names(): string[] {
    return Array.from(new Set([...this.#sources.values()].flat().filter(isName))).slice(0, namesMax)
  }
}
