// The set-up of every storage test: a database of its own and the typed statements bound to it,
// with defaults for what the test does not care about.
import { randomUUID } from 'node:crypto'
import {
  type AckItem,
  type AckStatus,
  ack,
  configure,
  type Executor,
  type Lease,
  type NewMessage,
  type PopDemand,
  type PopRequest,
  type PopResult,
  type PushResult,
  pop,
  push,
} from '@rouse/storage'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import type { Test } from 'tap'

export interface TakeOptions extends Omit<Partial<PopRequest>, 'source' | 'demands'> {
  readonly partition?: string
  readonly batch?: number
  readonly partitions?: number
  readonly leaseMs?: number
  readonly autoAck?: boolean
  readonly leasePerMessage?: boolean
  readonly on?: Executor
}

export interface Storage extends TestDatabase {
  /** Pushes payloads to one partition; undefined: they are independent. */
  readonly send: (
    queue: string,
    partition: string | undefined,
    payloads: readonly unknown[],
    on?: Executor,
  ) => Promise<PushResult>
  /** Pops as group `g`, by default one message from one lane. */
  readonly take: (queue: string, options?: TakeOptions) => Promise<PopResult>
  /** Pops, and returns the lease. Fails unless the pop returns exactly one. */
  readonly lease: (queue: string, options?: TakeOptions) => Promise<Lease>
  readonly set: (queue: string, options: Record<string, unknown>) => Promise<void>
  readonly rows: <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>
  /** A client in a transaction of its own, rolled back at the end of the test. */
  readonly begin: (mode?: string) => Promise<pg.PoolClient>
  /** Resolves when `count` calls wait for a lock. A call that waits at a barrier does not count. */
  readonly waiting: (count?: number) => Promise<unknown>
  readonly lane: (partition?: string, group?: string) => Promise<Lane>
}

export interface Lane {
  readonly next: string
  readonly ready: boolean
  readonly lease_id: string | null
  readonly blocked_until: Date | null
}

export const start = Date.parse('2030-01-01T00:00:00Z')

export async function openStorage(t: Test, poolMax = 12): Promise<Storage> {
  const database = await testDatabase(t, { poolMax })
  const { pool } = database
  async function take(queue: string, options: TakeOptions = {}): Promise<PopResult> {
    const {
      partition,
      on = pool,
      batch,
      partitions,
      leaseMs,
      autoAck,
      leasePerMessage,
      ...rest
    } = options
    const demands = [demand({ batch, partitions, leaseMs, autoAck, leasePerMessage })]
    return pop(on, { source: { queue, partition }, group: 'g', demands, ...rest })
  }
  async function rows<Row extends object>(sql: string, values: readonly unknown[] = []) {
    return (await pool.query<Row>(sql, [...values])).rows
  }
  return {
    ...database,
    rows,
    take,
    send: (queue, partition, payloads, on = pool) =>
      push(
        on,
        payloads.map((payload) => message(queue, partition, payload)),
      ),
    async lease(queue, options) {
      const { leases, status } = await take(queue, options)
      if (leases.length !== 1) throw new Error(`${leases.length} leases, status ${status}`)
      return leases[0] as Lease
    },
    async set(queue, options) {
      await configure(pool, { queue, options })
    },
    async begin(mode = 'read committed') {
      const client = await pool.connect()
      t.teardown(() => client.release(true))
      client.on('error', () => {})
      await client.query(`begin isolation level ${mode}`)
      return client
    },
    waiting: (count = 1) =>
      eventually(async () => {
        const found = await rows(
          `select from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and wait_event <> 'advisory'`,
        )
        return found.length >= count
      }),
    async lane(partition = 'p', group = 'g') {
      const found = await rows<Lane>(
        `select l.next, l.ready, l.lease_id, l.blocked_until from rouse.lanes l
         join rouse.partitions p on p.id = l.partition_id join rouse.groups g on g.id = l.group_id
         where p.name = $1 and g.name = $2`,
        [partition, group],
      )
      if (found.length !== 1) throw new Error(`${found.length} lanes ${partition} of ${group}`)
      return found[0] as Lane
    },
  }
}

/** A demand, by default of one message from one lane. */
export function demand(options: {
  batch?: number | undefined
  partitions?: number | undefined
  leaseMs?: number | undefined
  autoAck?: boolean | undefined
  leasePerMessage?: boolean | undefined
  holder?: string
}): PopDemand {
  const { batch = 1, partitions = 1, holder = 'test', leaseMs, autoAck, leasePerMessage } = options
  return { batch, partitions, holder, leaseMs, autoAck, leasePerMessage }
}

export function message(
  queue: string,
  partition: string | undefined,
  payload: unknown,
  rest: Partial<NewMessage> = {},
): NewMessage {
  return { queue, partition, id: randomUUID(), payload: JSON.stringify(payload), ...rest }
}

/** Returns the payloads that a pop delivered, lease by lease, in order. */
export function payloads(result: { leases: readonly Lease[] } | Lease): unknown[] {
  const leases = 'leases' in result ? result.leases : [result]
  return leases.flatMap((lease) => lease.messages.map(({ payload }) => JSON.parse(payload)))
}

export function seqs(lease: Lease): number[] {
  return lease.messages.map(({ seq }) => seq)
}

/** An acknowledgement of one message of a lease, by its index in the lease. */
export function item(
  lease: Lease,
  place = 0,
  status?: AckStatus,
  rest: Partial<AckItem> = {},
): AckItem {
  const { seq } = lease.messages[place] as { seq: number }
  return {
    leaseId: lease.leaseId,
    message: { partitionId: lease.partitionId, seq },
    status,
    ...rest,
  }
}

/** Completes all messages of a lease. */
export function finish(executor: Executor, lease: Lease): ReturnType<typeof ack> {
  return ack(executor, [{ leaseId: lease.leaseId }])
}

export interface Refusal {
  readonly state: string | undefined
  readonly detail: Record<string, unknown>
}

/** Returns the SQLSTATE and the JSON detail of a refused call. Fails if the call succeeds. */
export async function refusal(call: Promise<unknown>): Promise<Refusal> {
  try {
    await call
  } catch (error) {
    const { code, detail } = error as { code?: string; detail?: string }
    if (code === undefined) throw error
    return { state: code, detail: code.startsWith('RS') ? JSON.parse(detail ?? '{}') : {} }
  }
  throw new Error('the call was not refused')
}
