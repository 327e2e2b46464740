// A client for tests of programs that use Rouse. It is the real client, with a node in memory behind it whose
// clock is virtual: a retry after five minutes costs a test no time.
import { pause, wallMs } from '../clock.ts'
import { type Duration, parseDuration } from '../duration.ts'
import { Rouse, type RouseOptions } from '../rouse.ts'
import { RouseError } from '../rouse-error.ts'
import { memoryTransport } from './memory-routes.ts'
import { type MemoryItem, MemoryServer } from './memory-server.ts'

/** A message as it was pushed. */
export interface PushedMessage<Data = unknown> {
  readonly id: string
  readonly data: Data
  readonly partition: string | null
  readonly dedupeKey: string | undefined
  readonly delayMs: number | undefined
  readonly runAt: Date | undefined
  readonly unique: MemoryItem['unique']
  readonly priority: number | undefined
  readonly retryLimit: number | undefined
  readonly retryBackoffMs: MemoryItem['retryBackoffMs']
  readonly ttlMs: number | undefined
  readonly headers: Readonly<Record<string, unknown>> | undefined
  readonly traceId: string | undefined
}

interface Recorded {
  readonly queue: string
  readonly message: PushedMessage
}

/** Settings of a client for tests. */
// biome-ignore lint/suspicious/noExplicitAny: without declared queues, payloads are untyped
export interface TestRouseOptions<Queues extends object = any>
  extends Omit<RouseOptions<Queues>, 'urls' | 'transport'> {
  /** Where the virtual clock begins. Default: the time of this call. */
  readonly now?: Date | undefined
}

/** How long workers may be busy in real time before `drain` and `advance` give up. */
const busyMsMax = 10_000
/** How many times `drain` moves the clock to the next retry. */
const retriesMax = 10_000
const pollMs = 1

/** Creates a client without a server. */
// biome-ignore lint/suspicious/noExplicitAny: without declared queues, payloads are untyped
export function testRouse<Queues extends object = Record<string, any>>(
  options: TestRouseOptions<Queues> = {},
): TestRouse<Queues> {
  return new TestRouse(options)
}

/** A client with a node in memory, whose clock the test moves. */
export class TestRouse<Queues extends object> extends Rouse<Queues> {
  readonly #server: MemoryServer
  readonly #pushed: Recorded[]

  constructor({ now, ...options }: TestRouseOptions<Queues>) {
    const server = new MemoryServer(now?.getTime() ?? wallMs())
    const pushed: Recorded[] = []
    const transport = memoryTransport(server, (item, id) => {
      const recorded = { queue: item.queue, message: messageOf(item, id) }
      // A message that is replaced keeps its id and its place.
      const index = pushed.findIndex(({ message }) => message.id === id)
      if (index < 0) pushed.push(recorded)
      else pushed[index] = recorded
    })
    super({ ...options, urls: 'http://memory.invalid', transport })
    this.#server = server
    this.#pushed = pushed
  }

  /** The time of the virtual clock. */
  get now(): Date {
    return new Date(this.#server.nowMs)
  }

  /** What was pushed to the queue so far, in order; without duplicates. */
  pushed<Name extends keyof Queues & string>(queue: Name): readonly PushedMessage<Queues[Name]>[] {
    return this.#pushed
      .filter((one) => one.queue === queue)
      .map(({ message }) => message as PushedMessage<Queues[Name]>)
  }

  /** Moves the clock. Handlers run at the times at which their messages are due. */
  async advance(duration: Duration): Promise<void> {
    const targetMs = this.#server.nowMs + parseDuration(duration, 'duration')
    await this.#settle()
    for (let next = this.#server.nextEventMs; next !== undefined && next <= targetMs; ) {
      this.#server.moveTo(next)
      await this.#settle()
      next = this.#server.nextEventMs
    }
    this.#server.moveTo(targetMs)
    await this.#settle()
  }

  /**
   * Resolves when the workers have handled everything, retries included: the clock moves to each retry.
   * Messages that are delayed stay scheduled.
   */
  async drain(): Promise<void> {
    for (let retries = 0; retries <= retriesMax; retries += 1) {
      await this.#settle()
      const next = this.#server.nextRetryMs
      if (next === undefined) return
      this.#server.moveTo(next)
    }
    throw new RouseError('timeout', `drain: messages are still retried after ${retriesMax} retries`)
  }

  /** Resolves when no worker has anything to do at the present time of the clock. */
  async #settle(): Promise<void> {
    await this.flush()
    for (let waitedMs = 0; waitedMs < busyMsMax; waitedMs += pollMs) {
      await pause(pollMs)
      if (!this.#server.isBusy) return
    }
    throw new RouseError(
      'timeout',
      `workers are still busy after ${busyMsMax} ms; does a handler wait?`,
    )
  }
}

/** Keys that the client makes for pushes without one. */
const generated = /^[0-9a-z]{24}-[0-9a-z]+$/

function messageOf(item: MemoryItem, id: string): PushedMessage {
  return {
    id,
    data: JSON.parse(JSON.stringify(item.payload)),
    partition: item.partition ?? null,
    dedupeKey: generated.test(item.transactionId ?? '') ? undefined : item.transactionId,
    delayMs: item.delayMs,
    runAt: item.runAt === undefined ? undefined : new Date(item.runAt),
    unique: item.unique,
    priority: item.priority,
    retryLimit: item.retryLimit,
    retryBackoffMs: item.retryBackoffMs,
    ttlMs: item.ttlMs,
    headers: item.headers,
    traceId: item.traceId,
  }
}
