// A fixed rate of messages over HTTP, with consumers that keep up. Messages are numbered, and the number
// determines everything else: the queue, the partition, the key or delay, and how often it fails.
import { once } from 'node:events'
import { type Answer, HttpConnection, requestBytes } from '../../bench/support/http-connection.ts'

/** Retention times, short enough that a run of minutes removes as much as it adds. */
export const keptSeconds = { completed: 45, letters: 60, keys: 60, idlePartition: 60 } as const

interface Queue {
  readonly name: string
  readonly groups: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
  /** How many of ten messages go to this queue. */
  readonly share: number
  readonly item: (n: number) => Readonly<Record<string, unknown>>
}

const shared = {
  leaseTime: 30,
  retryLimit: 2,
  retryBackoffMs: [200, 1_000],
  dedupWindowSeconds: keptSeconds.keys,
}

const queues: readonly Queue[] = [
  {
    name: 'orders',
    groups: ['billing', 'mail'],
    options: shared,
    share: 4,
    item: (n) => ({ partition: `customer-${n % 50}`, transactionId: `order-${n}` }),
  },
  {
    name: 'feed',
    groups: ['search', 'cache', 'audit'],
    options: { ...shared, onFailure: 'skip' },
    share: 3,
    item: (n) => ({ partition: `p${n % 10}`, transactionId: `event-${n}` }),
  },
  {
    name: 'jobs',
    groups: ['workers'],
    options: { ...shared, ordering: 'none' },
    share: 2,
    item: (n) => ({ partition: `p${n % 4}`, ...(isDelayed(n) && { delayMs: delayMs }) }),
  },
  {
    // Each partition is used for a while and then never again.
    name: 'sessions',
    groups: ['workers'],
    options: shared,
    share: 1,
    item: (n) => ({ partition: `session-${Math.floor(n / 200)}` }),
  },
]

const delayMs = 3_000
const batch = 10
const producersPerNode = 2
const consumersPerGroup = 4

const isDelayed = (n: number): boolean => n % 7 === 0
/** One message in fifty fails at its first attempt, one in five hundred at every attempt. */
const fails = (n: number, attempt: number): boolean =>
  n % 500 === 0 || (n % 50 === 0 && attempt === 1)

interface Popped {
  readonly messages: readonly {
    readonly receipt: string
    readonly attempt: number
    readonly data: { readonly n: number; readonly sentAt: number }
  }[]
}

export class Load {
  pushed = 0
  /** Acknowledged deliveries of all groups together. */
  delivered = 0
  failedRequests = 0
  pushesMs: number[] = []
  deliveriesMs: number[] = []
  readonly #urls: readonly string[]
  readonly #rate: number
  readonly #connections: HttpConnection[] = []
  #ended = false
  #work: Promise<unknown> = Promise.resolve()

  constructor(urls: readonly string[], rate: number) {
    this.#urls = urls
    this.#rate = rate
  }

  async start(): Promise<void> {
    const connection = await this.#open(0)
    for (const { name, options } of queues) {
      await this.#ask(connection, 'POST', '/api/v1/configure', { queue: name, options }, [200, 201])
    }
    const producers = this.#urls.length * producersPerNode
    const begunMs = performance.now()
    const produce = Array.from({ length: producers }, (_, i) =>
      this.#produce(i, producers, begunMs),
    )
    const consume = queues.flatMap(({ name, groups }) =>
      groups.flatMap((group) =>
        Array.from({ length: consumersPerGroup }, (_, i) => this.#consume(name, group, i)),
      ),
    )
    this.#work = Promise.allSettled([...produce, ...consume])
  }

  /** Stops pushing and aborts requests in flight. */
  async stop(): Promise<void> {
    this.#ended = true
    for (const connection of this.#connections) connection.close()
    await Promise.race([this.#work, once(AbortSignal.timeout(1_000), 'abort')])
  }

  /** Returns the latencies since the previous call of this method. */
  takeLatencies(): { readonly pushesMs: number[]; readonly deliveriesMs: number[] } {
    const { pushesMs, deliveriesMs } = this
    this.pushesMs = []
    this.deliveriesMs = []
    return { pushesMs, deliveriesMs }
  }

  /** Pushes at fixed times, whatever the latency: a push that is late is sent as soon as possible. */
  async #produce(own: number, producers: number, begunMs: number): Promise<void> {
    const connection = await this.#open(own)
    for (let turn = own; !this.#ended; turn += producers) {
      const dueMs = begunMs + (turn * batch * 1_000) / this.#rate
      const waitMs = dueMs - performance.now()
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      const items = Array.from({ length: batch }, (_, i) => itemOf(turn * batch + i))
      const sentMs = performance.now()
      if (await this.#ask(connection, 'POST', '/api/v1/push', { items }, [201])) {
        this.pushesMs.push(performance.now() - sentMs)
        this.pushed += batch
      }
    }
  }

  async #consume(queue: string, group: string, own: number): Promise<void> {
    const connection = await this.#open(own)
    const path = `/api/v1/pop/queue/${queue}?consumerGroup=${group}&wait=true&timeout=5000&batch=20&partitions=10`
    while (!this.#ended) {
      const answer = await this.#ask(connection, 'GET', path, undefined, [200, 204])
      if (answer?.status !== 200) continue
      const { messages } = JSON.parse(answer.body.toString()) as Popped
      const acknowledgments = messages.map(({ receipt, attempt, data }) => {
        if (attempt === 1 && !isDelayed(data.n)) this.deliveriesMs.push(Date.now() - data.sentAt)
        const status = fails(data.n, attempt) ? 'failed' : 'completed'
        return { receipt, status, ...(status === 'failed' && { error: 'as it should' }) }
      })
      await this.#ask(
        connection,
        'POST',
        '/api/v1/ack/batch',
        { consumerGroup: group, acknowledgments },
        [200],
      )
      this.delivered += messages.length
    }
  }

  async #open(own: number): Promise<HttpConnection> {
    const connection = await HttpConnection.open(this.#urls[own % this.#urls.length] as string)
    this.#connections.push(connection)
    return connection
  }

  /** Returns undefined, and counts a failure, if the status is not one of `wanted`. */
  async #ask(
    connection: HttpConnection,
    method: string,
    path: string,
    body: unknown,
    wanted: readonly number[],
  ): Promise<Answer | undefined> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await connection.request(requestBytes(method, path, text)).catch(() => undefined)
    if (answer !== undefined && wanted.includes(answer.status)) return answer
    if (this.#ended) return undefined
    this.failedRequests += 1
    if (answer === undefined) throw new Error(`${method} ${path}: the connection broke`)
    return undefined
  }
}

function itemOf(n: number): Readonly<Record<string, unknown>> {
  let place = n % 10
  for (const { name, share, item } of queues) {
    if (place < share)
      return { queue: name, payload: { n, sentAt: Date.now(), text: 'x'.repeat(160) }, ...item(n) }
    place -= share
  }
  throw new Error('the shares of the queues add up to less than ten')
}
