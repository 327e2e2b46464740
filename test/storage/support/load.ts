// Producers and consumers with their own connections, and a record of the deliveries in order.
import { randomUUID } from 'node:crypto'
import { classifyPostgresError } from '@rouse/database'
import { ack, type Executor, type NewMessage, type PopDemand, pop, push } from '@rouse/storage'
import { type Random, seededRandom, type TestDatabase, testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import type { Test } from 'tap'

/** The number of messages of a load test, by default small enough for `npm test`. */
export const loadMessageCount = Number(process.env.ROUSE_TEST_LOAD_MESSAGES ?? 20_000)

export interface LoadDatabase {
  readonly pool: pg.Pool
  readonly clients: readonly pg.PoolClient[]
}

/** Opens a database without test instrumentation, and this number of connections to it. */
export async function loadDatabase(t: Test, connections: number): Promise<LoadDatabase> {
  const database: TestDatabase = await testDatabase(t, {
    instrumented: false,
    poolMax: connections + 1,
  })
  const clients = await Promise.all(
    Array.from({ length: connections }, () => database.pool.connect()),
  )
  t.teardown(() => clients.forEach((client) => client.release()))
  return { pool: database.pool, clients }
}

export interface Delivery {
  readonly id: string
  readonly seq: number
  readonly producer: number
  readonly n: number
}

export interface LoadPlan {
  readonly queue: string
  readonly messages: number
  readonly producers: readonly Executor[]
  readonly consumers: readonly Executor[]
  readonly partitions: number
  readonly pushBatchMax: number
  readonly demand: Omit<PopDemand, 'holder'>
  readonly seed: number
}

export interface LoadResult {
  /** Ids of the pushed messages by partition, in the order in which the pushes returned. */
  readonly pushed: Map<string, string[]>
  /** Deliveries by partition, in order. */
  readonly delivered: Map<string, Delivery[]>
  /** The number of rejected acks. It must be 0. */
  readonly rejected: number
}

/** Pushes and consumes concurrently until every message is delivered or no consumer finds more. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const pushed = new Map<string, string[]>()
  const delivered = new Map<string, Delivery[]>()
  const signal = new Signal()
  let deliveredCount = 0
  let rejected = 0
  let producing = plan.producers.length
  let stuck = false

  async function produce(executor: Executor, producer: number): Promise<void> {
    const random = seededRandom(plan.seed + producer)
    const share = Math.floor(plan.messages / plan.producers.length)
    const count = producer === 0 ? plan.messages - share * (plan.producers.length - 1) : share
    for (let n = 0; n < count; ) {
      const batch = makeBatch(plan, random, producer, n, count)
      const { items } = await untilNoRetry(() => push(executor, batch))
      items.forEach((item) => {
        if (item.status !== 'queued') throw new Error(`a message was ${item.status}`)
        appendTo(pushed, String(item.partition), item.messageId)
      })
      n += batch.length
      signal.raise()
    }
    producing -= 1
    signal.raise()
  }

  async function consume(executor: Executor, consumer: number): Promise<void> {
    let after = '0'
    while (deliveredCount < plan.messages && !stuck) {
      const seen = signal.count
      const demands = [{ ...plan.demand, holder: `consumer ${consumer}` }]
      const source = { queue: plan.queue }
      const { status, leases } = await untilNoRetry(() =>
        pop(executor, { source, group: 'g', demands, after }),
      )
      for (const lease of leases) {
        after = lease.partitionId
        for (const { id, seq, payload } of lease.messages) {
          const { producer, n } = JSON.parse(payload) as { producer: number; n: number }
          appendTo(delivered, String(lease.partition), { id, seq, producer, n })
        }
        deliveredCount += lease.messages.length
      }
      if (leases.length > 0) {
        // All partitions of one pop share the lease id.
        const { leaseId } = leases[0] as { readonly leaseId: string }
        rejected += (await untilNoRetry(() => ack(executor, [{ leaseId }]))).rejected.length
        signal.raise()
      } else if (status === 'empty') {
        const lastOne = signal.waiting === plan.consumers.length - 1
        // All producers are done and all other consumers wait, so messages that are missing now are lost.
        stuck = producing === 0 && signal.count === seen && lastOne
        if (!stuck) await signal.after(seen)
      }
    }
    signal.raise()
  }

  await Promise.all([
    ...plan.producers.map((executor, i) => produce(executor, i)),
    ...plan.consumers.map((executor, i) => consume(executor, i)),
  ])
  return { pushed, delivered, rejected }
}

function makeBatch(
  { queue, partitions, pushBatchMax }: LoadPlan,
  random: Random,
  producer: number,
  from: number,
  count: number,
): NewMessage[] {
  const size = Math.min(1 + random.below(pushBatchMax), count - from)
  return Array.from({ length: size }, (_, i) => ({
    queue,
    partition: `p${random.below(partitions)}`,
    id: randomUUID(),
    payload: JSON.stringify({ producer, n: from + i }),
  }))
}

const retryStates = new Set([
  'RS001', // the whole call must be repeated
  '55P03', // it gave up waiting for a lock; nodes repeat it, too
])

/** Repeats a call that fails with one of `retryStates`. Throws any other error. */
export async function untilNoRetry<Result>(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!retryStates.has(sqlState(error) ?? '')) throw error
    }
  }
}

export function sqlState(error: unknown): string | undefined {
  const known = classifyPostgresError(error) !== 'unavailable' && error instanceof Error
  return known && 'code' in error ? String(error.code) : undefined
}

function appendTo<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}

/** Wakes all waiters. Signals are counted, so one that comes between a check and a wait is not lost. */
export class Signal {
  #count = 0
  readonly #waiters: (() => void)[] = []

  get count(): number {
    return this.#count
  }

  get waiting(): number {
    return this.#waiters.length
  }

  raise(): void {
    this.#count += 1
    for (const wake of this.#waiters.splice(0)) wake()
  }

  /** Resolves once there were more signals than `seen`. */
  async after(seen: number): Promise<void> {
    if (this.#count > seen) return
    await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }
}
