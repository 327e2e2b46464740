// What the client remembers of the nodes. A node that failed rests: for as long as it asked, or longer with every failure
// in a row. Nobody asks a node that rests, so however many calls wait, a node in trouble sees one try after each rest.

import type { Random } from '../randomness.ts'
import { RouseError } from '../rouse-error.ts'
import { backoffMs } from './backoff.ts'

export interface Node {
  readonly url: URL
  failures: number
  restUntilMs: number
  lastError: RouseError | undefined
}

export class Nodes {
  readonly #nodes: readonly Node[]
  readonly #random: Random
  #turn: number

  constructor(urls: readonly string[], random: Random) {
    if (urls.length === 0) throw new RouseError('invalid_request', 'urls must name a node')
    this.#nodes = urls.map((url) => ({
      url: parseUrl(url),
      failures: 0,
      restUntilMs: 0,
      lastError: undefined,
    }))
    this.#random = random
    this.#turn = Math.floor(random() * urls.length)
  }

  /** In turn, one that neither rests nor was tried. */
  choose(nowMs: number, tried: ReadonlySet<Node>): Node | undefined {
    for (let i = 0; i < this.#nodes.length; i += 1) {
      this.#turn = (this.#turn + 1) % this.#nodes.length
      const node = this.#nodes[this.#turn] as Node
      if (node.restUntilMs <= nowMs && !tried.has(node)) return node
    }
    return undefined
  }

  /** Until one of them has rested, and a little longer, so that not all who wait come at once. */
  restMs(nowMs: number): number {
    const restMs = Math.max(0, Math.min(...this.#nodes.map((node) => node.restUntilMs)) - nowMs)
    return restMs * (1 + this.#random() / 4)
  }

  get lastError(): RouseError | undefined {
    return this.#nodes.find((node) => node.lastError !== undefined)?.lastError
  }

  succeeded(node: Node): void {
    node.failures = 0
    node.restUntilMs = 0
    node.lastError = undefined
  }

  failed(node: Node, error: RouseError, nowMs: number, retryAfterMs = 0): void {
    node.failures += 1
    node.lastError = error
    const restMs = Math.max(retryAfterMs, backoffMs(node.failures, this.#random))
    node.restUntilMs = Math.max(node.restUntilMs, nowMs + restMs)
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new RouseError('invalid_request', `not the URL of a node: ${JSON.stringify(text)}`)
}
