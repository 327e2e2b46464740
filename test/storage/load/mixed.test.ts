// Calls of every kind run concurrently on the same few lanes. None may deadlock or fail, and afterwards the
// tables must be consistent.
import { randomUUID } from 'node:crypto'
import {
  type AckItem,
  ack,
  ackIn,
  configure,
  deleteGroup,
  type Executor,
  enqueue,
  extend,
  type Lease,
  type NewMessage,
  type PopRequest,
  pop,
  promoteDue,
  purge,
  push,
  reapExpired,
  release,
  retain,
  seek,
  transaction,
} from '@rouse/storage'
import { type Random, seededRandom } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { loadDatabase, sqlState, untilNoRetry } from '../support/load.ts'

const connections = 16
const callCount = 10_000
const seeds = process.env.ROUSE_TEST_SEED ? [Number(process.env.ROUSE_TEST_SEED)] : [1]

const queues = ['hold', 'skip', 'none', 'limited'] as const
const partitionsPerQueue = 6
const groups = ['g0', 'g1']
const heldMax = 200

for (const seed of seeds) {
  test(`${callCount} calls of every kind neither deadlock nor break a rule (seed ${seed})`, async (t) => {
    const { pool, clients } = await loadDatabase(t, connections)
    await configureQueues(pool)
    const held: Lease[] = []
    const counts = new Map<string, number>()
    let left = callCount
    await Promise.all(
      clients.map(async (client, i) => {
        const random = seededRandom(seed * 1000 + i)
        while (left > 0) {
          left -= 1
          const name = random.pick(deck)
          counts.set(name, (counts.get(name) ?? 0) + 1)
          await makeCall(t, name, { client, random, held })
        }
      }),
    )
    t.equal(
      [...counts.values()].reduce((sum, count) => sum + count),
      callCount,
    )
    t.equal(counts.size, Object.keys(weights).length, 'every kind was called')
    t.same(await inconsistencies(pool), [])
  })
}

interface Caller {
  readonly client: Executor
  readonly random: Random
  /** Active leases, shared by all callers, as consumers may ack through any node. */
  readonly held: Lease[]
}

const calls = {
  async push({ client, random }: Caller) {
    await push(client, someItems(random, 5))
  },
  async pop({ client, random, held }: Caller) {
    const { leases } = await pop(client, somePop(random))
    if (held.length < heldMax) held.push(...leases)
  },
  async ack({ client, random, held }: Caller) {
    await ack(client, someAcks(random, takeLeases(random, held, 3)))
  },
  async release({ client, random, held }: Caller) {
    await release(
      client,
      takeLeases(random, held, 3).map(({ leaseId }) => leaseId),
    )
  },
  async extend({ client, random, held }: Caller) {
    const leases = takeLeases(random, held, 3)
    held.push(...leases)
    await extend(
      client,
      leases.map(({ leaseId }) => ({ leaseId, durationMs: 1 + random.below(1_000) })),
    )
  },
  async transaction({ client, random, held }: Caller) {
    const acks = takeLeases(random, held, 2).map(({ leaseId }) => ({ leaseId }))
    await transaction(client, { acks, pushes: someItems(random, 3) })
  },
  async ackIn({ client, random, held }: Caller) {
    for (const { leaseId, partitionId, messages } of takeLeases(random, held, 1)) {
      for (const { seq } of messages) await ackIn(client, leaseId, { partitionId, seq })
    }
  },
  async reap({ client, random }: Caller) {
    await reapExpired(client, 1 + random.below(50))
  },
  async promote({ client, random }: Caller) {
    await promoteDue(client, 1 + random.below(50))
  },
  async enqueue({ client, random }: Caller) {
    const { queue, partition, payload, transactionId } = someItem(random)
    await enqueue(client, { queue, partition, payload, transactionId, delayMs: random.below(5) })
  },
  async seek({ client, random }: Caller) {
    const to = random.below(2) === 0 ? 'end' : new Date(Date.now() - random.below(1_000))
    await seek(client, { queue: random.pick(queues), group: random.pick(groups), to })
  },
  async configure({ client, random }: Caller) {
    const options = {
      maxInFlight: random.pick([0, 50]),
      retryLimit: random.below(3),
      maxSize: random.pick([0, 1_000_000]),
    }
    await configure(client, { queue: random.pick(queues), options })
  },
  async retain({ client, random }: Caller) {
    const idlePartitionMs = random.pick([0, 60_000])
    await retain(client, { completedMs: 0, idlePartitionMs, rows: 1 + random.below(100) })
  },
  async purge({ client, random }: Caller) {
    await purge(client, random.pick(queues))
  },
  async deleteGroup({ client, random }: Caller) {
    await deleteGroup(client, random.pick(queues), someNewGroup(random))
  },
  async remove({ client }: Caller) {
    await client.query({
      text: `select from rouse.removal_step('load')`,
      values: [],
      rowMode: 'array',
    })
  },
} satisfies Record<string, (caller: Caller) => Promise<void>>

type CallName = keyof typeof calls

/** How often each call is chosen, relative to the others. */
const weights: Record<CallName, number> = {
  push: 25,
  pop: 25,
  ack: 15,
  transaction: 8,
  release: 5,
  extend: 5,
  ackIn: 3,
  reap: 4,
  promote: 5,
  enqueue: 5,
  seek: 1,
  configure: 1,
  retain: 2,
  purge: 1,
  deleteGroup: 1,
  remove: 3,
}
const deck = Object.entries(weights).flatMap(([name, weight]) =>
  Array.from({ length: weight }, () => name as CallName),
)

const operators: ReadonlySet<CallName> = new Set(['seek', 'configure', 'purge', 'deleteGroup'])

async function makeCall(t: Test, name: CallName, caller: Caller): Promise<void> {
  try {
    await untilNoRetry(() => calls[name](caller))
  } catch (error) {
    // The lease may be lost because it expired or because a seek moved its group.
    const lost = sqlState(error) === 'RS409' && (name === 'transaction' || name === 'ackIn')
    // An operation on a queue or group is refused while another caller's ackIn is open.
    const met = sqlState(error) === 'RS409' && operators.has(name)
    if (!lost && !met) t.fail(`${name} failed`, { error })
  }
}

async function configureQueues(pool: pg.Pool): Promise<void> {
  const retryBackoffMs = [0, 2]
  const options = {
    hold: { retryBackoffMs },
    skip: { retryBackoffMs, onFailure: 'skip' },
    none: { retryBackoffMs, ordering: 'none' },
    limited: { retryBackoffMs, maxInFlight: 50, maxSize: 1_000_000 },
  }
  for (const queue of queues) {
    await configure(pool, { queue, namespace: 'mixed', options: options[queue] })
    for (const group of groups) {
      const demands = [{ batch: 1, partitions: 1, holder: 'first' }]
      await pop(pool, { source: { queue }, group, demands })
    }
  }
}

function someItem(random: Random): NewMessage {
  const keyed = random.below(5) === 0
  const late = random.below(10) === 0
  return {
    queue: random.pick(queues),
    partition: `p${random.below(partitionsPerQueue)}`,
    id: randomUUID(),
    payload: '{}',
    ...(keyed && { transactionId: `key ${random.below(1_000)}` }),
    ...(late && { delayMs: random.below(5) }),
  }
}

function someItems(random: Random, most: number): NewMessage[] {
  return Array.from({ length: 1 + random.below(most) }, () => someItem(random))
}

/** A random pop of one queue or of all queues, for one to three waiters, sometimes in a new group. */
function somePop(random: Random): PopRequest {
  const source = random.below(4) === 0 ? { namespace: 'mixed' } : { queue: random.pick(queues) }
  const group = random.below(20) === 0 ? someNewGroup(random) : random.pick(groups)
  const demands = Array.from({ length: 1 + random.below(3) }, (_, i) => ({
    batch: 1 + random.below(10),
    partitions: 1 + random.below(4),
    leaseMs: random.pick([1, 20, 10_000]),
    autoAck: random.below(10) === 0,
    holder: `waiter ${i}`,
  }))
  return { source, group, demands, after: String(random.below(24)) }
}

function someNewGroup(random: Random): string {
  return `new ${random.below(5)}`
}

function takeLeases(random: Random, held: Lease[], most: number): Lease[] {
  const count = Math.min(held.length, 1 + random.below(most))
  return Array.from({ length: count }, () => {
    const [lease] = held.splice(random.below(held.length), 1)
    return lease as Lease
  })
}

/** Random acks of the whole lease or of some of its messages, with any status. */
function someAcks(random: Random, leases: readonly Lease[]): AckItem[] {
  return leases.flatMap(({ leaseId, partitionId, messages }): AckItem[] => {
    const status = random.pick(['completed', 'completed', 'failed', 'retry', 'dlq'] as const)
    if (random.below(2) === 0) return [{ leaseId, status }]
    return messages
      .filter(() => random.below(3) > 0)
      .map(({ seq }) => ({ leaseId, message: { partitionId, seq }, status }))
  })
}
