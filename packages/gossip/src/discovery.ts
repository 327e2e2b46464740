// From what people write down to addresses that can be tried: `10.0.0.5:4601`, `rouse.internal:4601`
// (every answer counts, so that one name can stand for all nodes), `srv:_gossip._udp.rouse.internal`.
// Names are asked for again and again, quickly while nobody has answered yet.
import { lookup } from 'node:dns/promises'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Address,
  formatAddress,
  type HostAndPort,
  isNumeric,
  parseAddress,
} from './address.ts'
import { candidatesMax } from './candidates.ts'

const resolveEveryMs = 15_000
const resolveEveryAloneMs = 1_000
/** There is no room for the addresses of more. */
const namesMax = candidatesMax
const resolvedAtOnce = 32
/** What was asked cannot always be taken back, and nobody waits for the answer any more. */
const stopMsMax = 500
const srvPrefix = 'srv:'

/** Of node:dns/promises, or of a Resolver with servers of its own. */
export interface NameService {
  resolve4(name: string): Promise<string[]>
  resolve6(name: string): Promise<string[]>
  resolveSrv(name: string): Promise<{ readonly name: string; readonly port: number }[]>
  /** Takes back what was asked. */
  cancel?(): void
}

export interface DiscoveryOptions {
  readonly names: NameService
  readonly random: () => number
  /** Whether any peer has answered. */
  readonly isAlone: () => boolean
  readonly onAddresses: (source: string, addresses: readonly Address[]) => void
}

export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #sources = new Map<string, readonly string[]>()
  /** The last answer to each name; a failure does not wipe it out. */
  readonly #answers = new Map<string, readonly Address[]>()
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  #resolving: Promise<void> | undefined
  /** A name came while others were being resolved. */
  #isDueAgain = false

  constructor(options: DiscoveryOptions) {
    this.#options = options
  }

  /** What a source lists now. Numeric addresses are tried at once, names when they are resolved. */
  set(source: string, texts: readonly string[]): void {
    this.#sources.set(source, texts)
    this.#tell(source, texts)
    const names = this.#names()
    const isUnknown = (name: string) => !this.#answers.has(name)
    // With no names left nobody asks again; a name that returns was answered long ago, if it was.
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
    const names = new Set(this.#names())
    for (const name of this.#answers.keys()) if (!names.has(name)) this.#answers.delete(name)
    const left = names.values()
    await Promise.all(Array.from({ length: resolvedAtOnce }, () => this.#resolveEach(left)))
    if (!this.#isRunning) return
    for (const [source, texts] of this.#sources) this.#tell(source, texts)
  }

  /** One of several that take names from the same list. */
  async #resolveEach(left: Iterator<string>): Promise<void> {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      if (!this.#isRunning) return
      const addresses = await this.#resolve(next.value)
      if (addresses.length > 0) this.#answers.set(next.value, addresses)
    }
  }

  #tell(source: string, texts: readonly string[]): void {
    const addresses = texts.flatMap((text) =>
      isName(text) ? (this.#answers.get(text) ?? []) : [text],
    )
    this.#options.onAddresses(source, addresses)
  }

  #names(): string[] {
    return Array.from(new Set([...this.#sources.values()].flat().filter(isName))).slice(0, namesMax)
  }

  async #resolve(text: string): Promise<Address[]> {
    if (!text.startsWith(srvPrefix)) return this.#resolveHost(parseAddress(text))
    const records = await settled(this.#options.names.resolveSrv(text.slice(srvPrefix.length)))
    const answers = records.map(({ name, port }) => this.#resolveHost({ host: name, port }))
    return (await Promise.all(answers)).flat()
  }

  async #resolveHost(target: HostAndPort | undefined): Promise<Address[]> {
    if (target === undefined) return []
    const { host, port } = target
    const { names } = this.#options
    const [v4, v6] = await Promise.all([
      settled(names.resolve4(host)),
      settled(names.resolve6(host)),
    ])
    const found = [...v4, ...v6]
    // The name service knows nothing of /etc/hosts.
    const hosts = found.length > 0 ? found : await settled(lookupAll(host))
    return hosts.map((one) => formatAddress({ host: one, port }))
  }
}

function isName(text: string): boolean {
  const parsed = parseAddress(text)
  return text.startsWith(srvPrefix) || (parsed !== undefined && !isNumeric(parsed.host))
}

async function lookupAll(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

async function settled<Item>(answer: Promise<Item[]>): Promise<Item[]> {
  try {
    return await answer
  } catch {
    return []
  }
}
