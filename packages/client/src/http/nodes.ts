// The client's view of the nodes. A node that failed rests: at least for its `Retry-After`, and longer after
// each consecutive failure. No call uses a resting node, and waiting calls retry at different times, so a
// failing node gets few tries even if many calls wait.

import type { Random } from '../randomness.ts'
import { RouseError } from '../rouse-error.ts'
import { backoffMs } from './backoff.ts'

export interface Node {
  readonly url: URL
  /** The origin and the path, without a slash at the end. */
  readonly base: string
  /** The header for the credentials of the URL, such as those of a proxy. */
  readonly authorization: { readonly authorization: string } | undefined
  failures: number
  restUntilMs: number
  lastError: RouseError | undefined
}

export class Nodes {
  readonly #nodes: readonly Node[]
  readonly #random: Random
  #turn: number

  constructor(urls: readonly string[], random: Random) {
    if (urls.length === 0)
      throw new RouseError('invalid_request', 'urls must contain at least one node')
    this.#nodes = urls.map(parseUrl).map((url) => ({
      authorization: takeCredentials(url),
      url,
      base: url.origin + url.pathname.replace(/\/+$/, ''),
      failures: 0,
      restUntilMs: 0,
      lastError: undefined,
    }))
    this.#random = random
    this.#turn = Math.floor(random() * urls.length)
  }

  get haveCredentials(): boolean {
    return this.#nodes.some(({ authorization }) => authorization !== undefined)
  }

  /** The next node in rotation that is not resting and not in `tried`. */
  choose(nowMs: number, tried: ReadonlySet<Node>): Node | undefined {
    for (let i = 0; i < this.#nodes.length; i += 1) {
      this.#turn = (this.#turn + 1) % this.#nodes.length
      const node = this.#nodes[this.#turn] as Node
      if (node.restUntilMs <= nowMs && !tried.has(node)) return node
    }
    return undefined
  }

  /**
   * The time until the first node has rested, plus jitter, so that waiting calls do not all retry at once.
   */
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
  // The text may have a password, also if it is not a valid URL.
  const shown = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
  throw new RouseError('invalid_request', `invalid node URL: ${JSON.stringify(shown)}`)
}

/** Removes the credentials from the URL, so that no error shows them. */
function takeCredentials(url: URL): Node['authorization'] {
  const { username, password } = url
  if (username === '' && password === '') return undefined
  url.username = ''
  url.password = ''
  const bytes = new TextEncoder().encode(`${decode(username)}:${decode(password)}`)
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RouseError('invalid_request', 'credentials of a node URL must be percent-encoded')
  }
}
