// The last answer of the name service to each question: IPv4, IPv6 and /etc/hosts for a host, SRV for a
// service. If a question fails, its last answer is kept, so an outage of one address family or one SRV host
// removes no address. Only a definite "not found" removes an address.
import { lookup } from 'node:dns/promises'
import {
  type Address,
  formatAddress,
  type HostAndPort,
  isNumeric,
  parseAddress,
} from '../transport/address.ts'

const srvPrefix = 'srv:'
/** Definite: no such name, or no record of this type. */
const noneCodes: readonly unknown[] = ['ENOTFOUND', 'ENODATA']

/** The subset of node:dns/promises, or of a Resolver with its own servers, that is used here. */
export interface NameService {
  resolve4(name: string): Promise<string[]>
  resolve6(name: string): Promise<string[]>
  resolveSrv(name: string): Promise<{ readonly name: string; readonly port: number }[]>
  /** Cancels pending lookups. */
  cancel?(): void
}

export function isName(text: string): boolean {
  const parsed = parseAddress(text)
  return text.startsWith(srvPrefix) || (parsed !== undefined && !isNumeric(parsed.host))
}

export class NameLookup {
  readonly #names: NameService
  readonly #answers = new Map<string, readonly string[]>()

  constructor(names: NameService) {
    this.#names = names
  }

  /** The known addresses of `host:port` or `srv:name`. */
  addressesOf(text: string): Address[] {
    return this.#targetsOf(text).flatMap(({ host, port }) => {
      return this.#hostsOf(host).map((one) => formatAddress({ host: one, port }))
    })
  }

  async ask(text: string): Promise<void> {
    if (text.startsWith(srvPrefix)) await this.#ask(text, () => this.#askService(text))
    await Promise.all(this.#targetsOf(text).map(({ host }) => this.#askForHost(host)))
  }

  forgetAllBut(texts: readonly string[]): void {
    const kept = new Set(texts)
    for (const { host } of texts.flatMap((text) => this.#targetsOf(text))) {
      for (const question of Object.values(questionsFor(host))) kept.add(question)
    }
    for (const question of this.#answers.keys()) {
      if (!kept.has(question)) this.#answers.delete(question)
    }
  }

  async #askService(text: string): Promise<string[]> {
    const records = await this.#names.resolveSrv(text.slice(srvPrefix.length))
    return records.map(({ name, port }) => formatAddress({ host: name, port }))
  }

  async #askForHost(host: string): Promise<void> {
    const { v4, v6, local } = questionsFor(host)
    await Promise.all([
      this.#ask(v4, () => this.#names.resolve4(host)),
      this.#ask(v6, () => this.#names.resolve6(host)),
    ])
    // The name service does not read /etc/hosts.
    const isFound = this.#answerTo(v4).length + this.#answerTo(v6).length > 0
    if (!isFound) await this.#ask(local, () => lookupAll(host))
  }

  async #ask(question: string, answer: () => Promise<string[]>): Promise<void> {
    try {
      this.#answers.set(question, await answer())
    } catch (error) {
      const { code } = error as { readonly code?: unknown }
      if (noneCodes.includes(code)) this.#answers.delete(question)
    }
  }

  #targetsOf(text: string): HostAndPort[] {
    const texts = text.startsWith(srvPrefix) ? this.#answerTo(text) : [text]
    return texts.map(parseAddress).filter((target) => target !== undefined)
  }

  #hostsOf(host: string): readonly string[] {
    const { v4, v6, local } = questionsFor(host)
    const found = [...this.#answerTo(v4), ...this.#answerTo(v6)]
    return found.length > 0 ? found : this.#answerTo(local)
  }

  #answerTo(question: string): readonly string[] {
    return this.#answers.get(question) ?? []
  }
}

function questionsFor(host: string) {
  return { v4: `v4 ${host}`, v6: `v6 ${host}`, local: `local ${host}` }
}

async function lookupAll(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}
