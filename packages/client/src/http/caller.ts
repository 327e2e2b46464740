// One call to the cluster: chooses a node and, if a retry is safe, retries on another node or later. Almost
// every request may be sent twice: pushes carry an id, acknowledgements are fenced by their lease, and if the
// response to a pop is lost, the lease of the pop expires or is released. `afterUnknown` means that an
// earlier try may have been executed.

import { nowMs, pause } from '../clock.ts'
import { type Failure, failureOfAnswer, failureOfTransport } from '../consume/failure.ts'
import type { Random } from '../randomness.ts'
import { RouseError } from '../rouse-error.ts'
import { backoffMs } from './backoff.ts'
import { type Node, Nodes } from './nodes.ts'
import type { Transport, TransportAnswer } from './transport.ts'

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below `/api/v1`, with the query string. */
  readonly path: string
  readonly body?: string | undefined
  /**
   * Replaces `body` once an earlier try may have been executed. It receives the time since the call began.
   */
  readonly repeatBody?: ((sinceFirstMs: number) => string) | undefined
  /** The time limit of each try. Default: the client's. */
  readonly timeoutMs?: number | undefined
  /** No try begins later than this after the call. Default: the client's. */
  readonly retryForMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Aborts when the caller stops waiting. No further try begins, but an answer on its way is still read. */
  readonly leave?: AbortSignal | undefined
  /** No further try begins once an earlier one may have been executed. */
  readonly atMostOnce?: boolean | undefined
}

export interface Answer {
  readonly status: number
  readonly text: string
  /** An earlier try may have been executed. If this try was refused, the earlier one may be the reason. */
  readonly afterUnknown: boolean
}

/** A credential, or a function that returns the current one. */
export type Token = string | (() => string | Promise<string>)

export interface CallerOptions {
  readonly urls: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly token?: Token | undefined
  readonly transport: Transport
  readonly random: Random
  readonly timeoutMs: number
  readonly retryForMs: number
}

type Tried = { readonly answer: TransportAnswer } | { readonly failure: Failure }

export class Caller {
  readonly #options: CallerOptions
  readonly #nodes: Nodes
  readonly #headers: Readonly<Record<string, string>>
  readonly #jsonHeaders: Readonly<Record<string, string>>

  constructor(options: CallerOptions) {
    this.#options = options
    const { token, headers } = options
    this.#headers = typeof token === 'string' ? { ...headers, ...authorization(token) } : headers
    this.#jsonHeaders = { ...this.#headers, 'content-type': 'application/json' }
    this.#nodes = new Nodes(options.urls, options.random)
    if (token !== undefined && this.#nodes.haveCredentials) {
      throw new RouseError('invalid_request', 'either urls or token may have credentials, not both')
    }
  }

  /**
   * Resolves to the first answer that a retry would not change; that may be a 4xx. Rejects if none arrives in
   * time.
   */
  async call(call: Call): Promise<Answer> {
    const begunMs = nowMs()
    const deadlineMs = begunMs + (call.retryForMs ?? this.#options.retryForMs)
    const tried = new Set<Node>()
    let afterUnknown = false
    let rounds = 0
    let last: Failure | undefined
    for (;;) {
      checkAborted(call)
      const node = this.#nodes.choose(nowMs(), tried)
      if (node === undefined) {
        rounds += 1
        const waitMs = this.#waitMs(last, rounds)
        if (nowMs() + waitMs > deadlineMs) throw last?.error ?? this.#nothingRested()
        await pause(waitMs, call.leave ?? call.signal)
        tried.clear()
        continue
      }
      const body = afterUnknown ? call.repeatBody?.(Math.ceil(nowMs() - begunMs)) : undefined
      const result = await this.#try(node, body === undefined ? call : { ...call, body })
      if ('answer' in result) {
        this.#nodes.succeeded(node)
        return { status: result.answer.status, text: result.answer.text, afterUnknown }
      }
      last = result.failure
      afterUnknown ||= last.outcomeUnknown
      if (afterUnknown && call.atMostOnce === true) throw last.error
      tried.add(node)
      if (last.isOfNode) this.#nodes.failed(node, last.error, nowMs(), last.retryAfterMs)
    }
  }

  /**
   * The wait before the next round of tries. It lasts until a node may be used again. If a try of this call
   * has failed, it lasts at least as long as the `Retry-After` of that try and as long as the backoff.
   */
  #waitMs(last: Failure | undefined, rounds: number): number {
    const restMs = this.#nodes.restMs(nowMs())
    if (last === undefined) return restMs
    return Math.max(restMs, last.retryAfterMs ?? 0, backoffMs(rounds, this.#options.random))
  }

  #nothingRested(): RouseError {
    return this.#nodes.lastError ?? new RouseError('unreachable', 'no node is reachable')
  }

  async #try(node: Node, call: Call): Promise<Tried> {
    const { transport, token } = this.#options
    // Outside of the try: a credential that cannot be obtained is not a fault of the node.
    const own = typeof token === 'function' ? authorization(await token()) : node.authorization
    const headers = call.body === undefined ? this.#headers : this.#jsonHeaders
    const timeoutMs = call.timeoutMs ?? this.#options.timeoutMs
    const controller = new AbortController()
    const abort = (): void => controller.abort(call.signal?.reason)
    call.signal?.addEventListener('abort', abort)
    const timer = setTimeout(() => controller.abort(), timeoutMs)
    try {
      const answer = await transport.send({
        method: call.method,
        url: new URL(`${node.base}/api/v1${call.path}`),
        headers: own === undefined ? headers : { ...headers, ...own },
        body: call.body,
        signal: controller.signal,
        leave: call.leave,
      })
      const failure = failureOfAnswer(answer)
      return failure === undefined ? { answer } : { failure }
    } catch (error) {
      checkAborted(call)
      return { failure: failureOfTransport(error, node.url, timeoutMs, controller.signal.aborted) }
    } finally {
      clearTimeout(timer)
      call.signal?.removeEventListener('abort', abort)
    }
  }
}

/** Files end with a line break, which a header must not. */
function authorization(token: string): { readonly authorization: string } {
  return { authorization: `Bearer ${token.trim()}` }
}

function checkAborted({ signal, leave }: Call): void {
  signal?.throwIfAborted()
  leave?.throwIfAborted()
}
