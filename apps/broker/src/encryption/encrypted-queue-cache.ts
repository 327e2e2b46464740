import { encryptedQueues } from '@rouse/storage'
import type pg from 'pg'
import type { Logger } from '../log.ts'

const memoryMsMax = 10_000

/**
 * A worker's cache of the names of encrypted queues. It is refreshed when queue options have changed, when
 * hints were lost, and every ten seconds in case a notification was lost.
 */
export class EncryptedNames {
  /** Resolves after a query that started after this call. If the query fails, the cache does not change. */
  readonly refresh: () => Promise<void>
  readonly #everyMs: number
  #names: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined
  #failing = false

  constructor(options: {
    readonly pool: pg.Pool
    readonly log: Logger
    readonly everyMs?: number | undefined
  }) {
    this.#everyMs = options.everyMs ?? memoryMsMax
    this.refresh = sharedReads(() => this.#read(options.pool, options.log))
  }

  /** Resolves after the first query. */
  start(): Promise<void> {
    this.#timer ??= setInterval(() => void this.refresh(), this.#everyMs)
    return this.refresh()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  has(queue: string): boolean {
    return this.#names.has(queue)
  }

  /** Adds queues until the next refresh. */
  add(queues: readonly string[]): void {
    this.#names = new Set([...this.#names, ...queues])
  }

  async #read(pool: pg.Pool, log: Logger): Promise<void> {
    try {
      this.#names = new Set(await encryptedQueues(pool))
      this.#failing = false
    } catch (error) {
      const reason = (error as Error).message
      if (!this.#failing) log.warn({ reason }, 'could not read which queues are encrypted')
      this.#failing = true
    }
  }
}

/**
 * Runs one read at a time, for all callers. A caller that arrives during a read gets the result of the next
 * read, because the current read may have started before the change that the caller wants to see.
 */
export function sharedReads(read: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined

  function begin(): Promise<void> {
    next = undefined
    current = read().finally(() => {
      current = undefined
    })
    return current
  }

  return () => {
    if (next !== undefined) return next
    if (current === undefined) return begin()
    next = current.then(begin, begin)
    return next
  }
}
