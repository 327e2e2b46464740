// Pushes that are made while another of their queue is under way leave together when it is answered. So a quiet
// client adds no delay, a busy one makes big requests, and what was pushed first into a queue stays first.
import { afterThisTurn } from '../clock.ts'
import { isRouseError, RouseError } from '../rouse-error.ts'

export interface Pushed {
  readonly id: string
  readonly status: 'queued' | 'duplicate' | 'scheduled'
  readonly transactionId: string
  readonly partitionId: string
}

/** Sends the items in one request, all or nothing, and answers in their order. */
export type SendPush = (items: readonly string[]) => Promise<Pushed[]>

export interface PushBufferOptions {
  readonly send: SendPush
  /** Messages that may wait; a push beyond it is refused. */
  readonly messagesMax: number
}

/** Refusals that are about what was pushed, not about who pushes or where. */
const blames = new Set<number | undefined>([400, 413, 422])

/** Of one request: what servers take unless they were told otherwise. A UTF-16 unit is at most three bytes. */
export const requestItemsMax = 1_000
const requestCharsMax = 1_000_000

interface PushCall {
  readonly items: readonly string[]
  readonly chars: number
  readonly resolve: (pushed: Pushed[]) => void
  readonly reject: (error: unknown) => void
}

/** The pushes of one queue. */
interface Line {
  waiting: PushCall[]
}

export class PushBuffer {
  readonly #options: PushBufferOptions
  readonly #lines = new Map<string, Line>()
  #messages = 0
  #whenEmpty: (() => void)[] = []

  constructor(options: PushBufferOptions) {
    this.#options = options
  }

  /** Resolves when the items are stored. They are stored together: there are at most `requestItemsMax`. */
  push(queue: string, items: readonly string[]): Promise<Pushed[]> {
    if (this.#messages + items.length > this.#options.messagesMax) {
      const text = `${this.#messages} messages wait to be pushed already`
      return Promise.reject(new RouseError('buffer_full', text, { retryable: true }))
    }
    this.#messages += items.length
    return new Promise((resolve, reject) => {
      const chars = items.reduce((sum, item) => sum + item.length, 0)
      const call = { items, chars, resolve, reject }
      const line = this.#lines.get(queue)
      if (line !== undefined) {
        line.waiting.push(call)
        return
      }
      const opened: Line = { waiting: [call] }
      this.#lines.set(queue, opened)
      afterThisTurn(() => void this.#drain(queue, opened))
    })
  }

  /** Resolves when nothing waits and nothing is under way, whatever came of it. */
  async flush(): Promise<void> {
    if (this.#lines.size === 0) return
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve))
  }

  async #drain(queue: string, line: Line): Promise<void> {
    while (line.waiting.length > 0) {
      await this.#sendAll(takeRequest(line))
      // Those who were just answered push again before the next request is made up.
      if (line.waiting.length < requestItemsMax) await new Promise<void>(afterThisTurn)
    }
    this.#lines.delete(queue)
    if (this.#lines.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve()
  }

  /** A request that is refused stored nothing; halving finds whose fault it was. The others are none the wiser. */
  async #sendAll(calls: readonly PushCall[]): Promise<void> {
    try {
      const pushed = await this.#options.send(calls.flatMap(({ items }) => items))
      let at = 0
      for (const { items, resolve } of calls) {
        resolve(pushed.slice(at, at + items.length))
        at += items.length
      }
    } catch (error) {
      if (calls.length > 1 && isRouseError(error) && blames.has(error.status)) {
        const half = calls.length >> 1
        await this.#sendAll(calls.slice(0, half))
        await this.#sendAll(calls.slice(half))
        return
      }
      for (const { reject } of calls) reject(error)
    }
    for (const { items } of calls) this.#messages -= items.length
  }
}

/** Items for one request each, in order. */
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

/** As many of the oldest as fit one request; one that is too big for any goes alone. */
function takeRequest(line: Line): PushCall[] {
  let count = 0
  let items = 0
  let chars = 0
  for (const call of line.waiting) {
    items += call.items.length
    chars += call.chars
    if (count > 0 && (items > requestItemsMax || chars > requestCharsMax)) break
    count += 1
  }
  const taken = line.waiting.slice(0, count)
  line.waiting = line.waiting.slice(count)
  return taken
}
