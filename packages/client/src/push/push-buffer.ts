// While a push to a queue is in flight, further pushes to this queue wait; then they are sent together. A
// client with few pushes adds no delay, a busy one sends large requests, and messages of a queue stay in
// order.
import { afterThisTurn } from '../clock.ts'
import { blames, isRouseError, RouseError } from '../rouse-error.ts'

/** What became of a pushed message. */
export interface Pushed {
  readonly id: string
  readonly status: 'queued' | 'duplicate' | 'scheduled' | 'replaced'
  readonly transactionId: string
  readonly partitionId: string
}

/** Sends the items in one request, all or nothing. Resolves to results in item order. */
export type SendPush = (items: readonly string[]) => Promise<Pushed[]>

export interface PushBufferOptions {
  readonly send: SendPush
  /** The maximum number of waiting messages; further pushes are refused. */
  readonly messagesMax: number
}

/** Whether one item is the reason that a request was refused. */
function isBlame({ status, code }: RouseError): boolean {
  return blames.has(status) || code === 'unique_conflict'
}

/** The limits of one request. They stay within the server's, as a UTF-16 unit takes at most three bytes. */
export const requestItemsMax = 1_000
const requestCharsMax = 1_000_000

/** The maximum size of all waiting messages. A single call above it is accepted if nothing else waits. */
const bufferCharsMax = 64 * 1024 * 1024

interface PushCall {
  readonly items: readonly string[]
  readonly chars: number
  /** Takes the results of the whole request and the index of the first result of this call. */
  readonly resolve: (pushed: readonly Pushed[], at: number) => void
  readonly reject: (error: unknown) => void
}

/** The pushes of one queue. */
interface PendingPushes {
  waiting: PushCall[]
}

export class PushBuffer {
  readonly #options: PushBufferOptions
  readonly #pending = new Map<string, PendingPushes>()
  #messages = 0
  #chars = 0
  #whenEmpty: (() => void)[] = []

  constructor(options: PushBufferOptions) {
    this.#options = options
  }

  /** Stores the items together: at most `requestItemsMax`. Resolves when they are stored. */
  push(queue: string, items: readonly string[], signal?: AbortSignal): Promise<Pushed[]> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const settled = (): void => signal?.removeEventListener('abort', abort)
      const call: PushCall = {
        items,
        chars: items.reduce((sum, item) => sum + item.length, 0),
        resolve(pushed, at) {
          settled()
          resolve(pushed.slice(at, at + items.length))
        },
        reject(error) {
          settled()
          reject(error)
        },
      }
      const abort = (): void => {
        this.#remove(queue, call)
        call.reject(signal?.reason)
      }
      signal?.addEventListener('abort', abort)
      this.#add(queue, call)
    })
  }

  /** Removes a push that waits. One that was sent stays until its answer. */
  #remove(queue: string, call: PushCall): void {
    const pending = this.#pending.get(queue)
    const index = pending?.waiting.indexOf(call) ?? -1
    if (index < 0) return
    pending?.waiting.splice(index, 1)
    this.#messages -= call.items.length
    this.#chars -= call.chars
  }

  #add(queue: string, call: PushCall): void {
    const { messagesMax } = this.#options
    const isFull =
      this.#messages + call.items.length > messagesMax ||
      (this.#messages > 0 && this.#chars + call.chars > bufferCharsMax)
    if (isFull) {
      const text = `${this.#messages} messages are already waiting to be pushed`
      call.reject(new RouseError('buffer_full', text, { retryable: true }))
      return
    }
    this.#messages += call.items.length
    this.#chars += call.chars
    const pending = this.#pending.get(queue)
    if (pending !== undefined) {
      pending.waiting.push(call)
      return
    }
    const opened: PendingPushes = { waiting: [call] }
    this.#pending.set(queue, opened)
    afterThisTurn(() => void this.#drain(queue, opened))
  }

  /** Resolves when no push is waiting or in flight, whether the pushes succeeded or failed. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0) return
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve))
  }

  async #drain(queue: string, pending: PendingPushes): Promise<void> {
    while (pending.waiting.length > 0) {
      await this.#sendAll(takeRequest(pending))
      // Callers that were just answered may push again before the next request is built.
      if (pending.waiting.length < requestItemsMax) await new Promise<void>(afterThisTurn)
    }
    this.#pending.delete(queue)
    if (this.#pending.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve()
  }

  /**
   * A refused request stored nothing. It is split in halves until the bad push is alone; the others succeed.
   */
  async #sendAll(calls: readonly PushCall[]): Promise<void> {
    try {
      const pushed = await this.#options.send(calls.flatMap(({ items }) => items))
      let at = 0
      for (const { items, resolve } of calls) {
        resolve(pushed, at)
        at += items.length
      }
    } catch (error) {
      if (calls.length > 1 && isRouseError(error) && isBlame(error)) {
        const half = calls.length >> 1
        await this.#sendAll(calls.slice(0, half))
        await this.#sendAll(calls.slice(half))
        return
      }
      for (const { reject } of calls) reject(error)
    }
    for (const { items, chars } of calls) {
      this.#messages -= items.length
      this.#chars -= chars
    }
  }
}

/** Splits items into requests, in order. */
export function chunksOf(items: readonly string[]): string[][] {
  const chunks: string[][] = []
  let chars = 0
  for (const item of items) {
    const last = chunks.at(-1)
    chars += item.length
    if (last === undefined || last.length >= requestItemsMax || chars > requestCharsMax) {
      chunks.push([item])
      chars = item.length
    } else last.push(item)
  }
  return chunks
}

/** Takes the oldest pushes that fit into one request. A push above the limit is sent alone. */
function takeRequest(pending: PendingPushes): PushCall[] {
  let count = 0
  let items = 0
  let chars = 0
  for (const call of pending.waiting) {
    items += call.items.length
    chars += call.chars
    if (count > 0 && (items > requestItemsMax || chars > requestCharsMax)) break
    count += 1
  }
  const taken = pending.waiting.slice(0, count)
  pending.waiting = pending.waiting.slice(count)
  return taken
}
