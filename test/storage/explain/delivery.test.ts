// The cost of a call must depend neither on the size of the tables nor on the statistics of the planner. The
// cost is the number of pages touched, not time, because other load does not change it.
import { randomUUID } from 'node:crypto'
import {
  ack,
  type Executor,
  extend,
  type Lease,
  type NewMessage,
  type PopDemand,
  pop,
  promoteDue,
  push,
  reapExpired,
  release,
} from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { buffersOf } from '../support/buffers.ts'
import { inconsistencies } from '../support/consistency.ts'
import { fillTables, group, type Shape } from '../support/shape.ts'

const small: Shape = { partitions: 100, backlog: 1_000, stuck: 10 }
const large: Shape = { partitions: 100_000, backlog: 1_000_000, stuck: 20_000 }

/** The most additional pages per lookup in the large shape: its indexes are one or two levels deeper. */
const extraPagesPerLookup = 2

interface Measured {
  readonly name: string
  /** Roughly the number of rows that the call looks up by index; it limits the additional pages. */
  readonly lookups: number
  /** The most pages that the call may touch in the small shape. */
  readonly pagesMax: number
  readonly measure: (client: pg.ClientBase) => Promise<number>
}

const measured: readonly Measured[] = [
  {
    name: 'pop of a queue in which one lane of all is ready',
    lookups: 15,
    pagesMax: 60,
    measure: (client) => buffersOf(client, (executor) => popOne(executor, 'wide', 10)),
  },
  {
    name: 'pop for several waiters and partitions',
    lookups: 25,
    pagesMax: 100,
    measure: (client) =>
      buffersOf(client, (executor) =>
        popFrom(executor, 'wide', [
          { batch: 10, partitions: 5, holder: 'first' },
          { batch: 10, partitions: 5, holder: 'second' },
        ]),
      ),
  },
  {
    name: 'pop from a backlog',
    lookups: 15,
    pagesMax: 60,
    measure: (client) => buffersOf(client, (executor) => popOne(executor, 'deep', 100)),
  },
  {
    name: 'pop beside blocked and leased lanes',
    lookups: 15,
    pagesMax: 60,
    measure: (client) => buffersOf(client, (executor) => popOne(executor, 'stuck', 10)),
  },
  {
    name: 'pop that finds blocked and leased lanes only',
    lookups: 15,
    pagesMax: 60,
    measure: (client) =>
      buffersOf(
        client,
        (executor) => popOne(executor, 'stuck', 10),
        async (executor) => void (await popOne(executor, 'stuck', 1_000)),
      ),
  },
  {
    name: 'pop of independent messages beside others that wait for their retry',
    lookups: 15,
    pagesMax: 60,
    measure: (client) => buffersOf(client, (executor) => popOne(executor, 'retrying', 10)),
  },
  {
    name: 'general pop of independent messages beside others that wait for their retry',
    lookups: 25,
    pagesMax: 100,
    measure: (client) =>
      buffersOf(client, (executor) =>
        popFrom(executor, 'retrying', [{ batch: 10, partitions: 2, holder: 'test' }]),
      ),
  },
  {
    name: 'push of one independent message',
    lookups: 10,
    pagesMax: 50,
    measure: (client) =>
      buffersOf(client, (executor) =>
        push(executor, [{ queue: 'retrying', id: randomUUID(), payload: '1' }]),
      ),
  },
  {
    name: 'push of one message to one of many partitions',
    lookups: 10,
    pagesMax: 50,
    measure: (client) => buffersOf(client, (executor) => push(executor, items('wide', [3]))),
  },
  {
    name: 'push of one message to a backlog',
    lookups: 10,
    pagesMax: 50,
    measure: (client) => buffersOf(client, (executor) => push(executor, items('deep', [1]))),
  },
  {
    name: 'push to a hundred partitions',
    lookups: 1_200,
    pagesMax: 4_000,
    measure: (client) =>
      buffersOf(client, async (executor) => push(executor, items('wide', await spread(client)))),
  },
  {
    name: 'ack of a lease',
    lookups: 12,
    pagesMax: 50,
    measure: (client) => withLease(client, (executor, { leaseId }) => ack(executor, [{ leaseId }])),
  },
  {
    name: 'ack of one failed message',
    lookups: 20,
    pagesMax: 80,
    measure: (client) =>
      withLease(client, (executor, { leaseId, partitionId, messages }) =>
        ack(executor, [
          { leaseId, message: { partitionId, seq: messages[0]?.seq ?? 0 }, status: 'failed' },
        ]),
      ),
  },
  {
    name: 'extension of a lease',
    lookups: 14,
    pagesMax: 50,
    measure: (client) =>
      withLease(client, (executor, { leaseId }) =>
        extend(executor, [{ leaseId, durationMs: 60_000 }]),
      ),
  },
  {
    name: 'release of a lease',
    lookups: 17,
    pagesMax: 60,
    measure: (client) => withLease(client, (executor, { leaseId }) => release(executor, [leaseId])),
  },
  {
    name: 'search for expired leases among live ones',
    lookups: 3,
    pagesMax: 20,
    measure: (client) => buffersOf(client, (executor) => reapExpired(executor)),
  },
  {
    name: 'search for what is due among what is not',
    lookups: 6,
    pagesMax: 30,
    measure: (client) => buffersOf(client, (executor) => promoteDue(executor)),
  },
]

/** Calls that leave many dead rows behind when they are rolled back. They are measured last. */
const wide: readonly Measured[] = [
  {
    name: 'pop of a hundred partitions for one waiter',
    lookups: 1_400,
    pagesMax: 5_000,
    measure: (client) =>
      buffersOf(
        client,
        (executor) => popAll(executor),
        async (executor) => void (await push(executor, items('wide', await spread(client)))),
      ),
  },
  {
    name: 'ack of a lease of a hundred partitions',
    lookups: 1_400,
    pagesMax: 5_000,
    measure: (client) =>
      withWideLease(client, (executor, leases) =>
        ack(executor, [{ leaseId: (leases[0] as Lease).leaseId }]),
      ),
  },
  {
    name: 'ack of messages of a hundred partitions, one by one',
    lookups: 1_400,
    pagesMax: 5_000,
    measure: (client) =>
      withWideLease(client, (executor, leases) =>
        ack(
          executor,
          leases.map(({ leaseId, partitionId, messages }) => ({
            leaseId,
            message: { partitionId, seq: messages[0]?.seq ?? 0 },
          })),
        ),
      ),
  },
]

test('the pages a call touches do not grow with the tables', async (t) => {
  const { client: smallClient } = await filledDatabase(t, small)
  const baseline = await measureAll(smallClient, [...measured, ...wide])
  for (const { name, pagesMax } of [...measured, ...wide]) {
    t.ok(Number(baseline.get(name)) <= pagesMax, `${name}: ${baseline.get(name)} pages`)
  }
  const { client, session } = await filledDatabase(t, large)
  t.same(await inconsistencies(client), [], 'the large tables are such as calls would leave them')

  await t.test('for a session that planned while the tables were tiny', async (t) => {
    compare(t, baseline, await measureAll(session))
  })
  await t.test('when the tables were analysed while they were tiny', async (t) => {
    compare(t, baseline, await measureAll(client))
  })
  await t.test('when the tables were never analysed', async (t) => {
    await forgetStatistics(client)
    compare(t, baseline, await measureAll(client))
  })
  await t.test('when the tables were analysed as they are', async (t) => {
    await client.query('analyze')
    compare(t, baseline, await measureAll(client))
  })
  await t.test('if a call touches a hundred partitions', async (t) => {
    compare(t, baseline, await measureAll(client, wide), wide)
    await forgetStatistics(client)
    compare(t, baseline, await measureAll(client, wide), wide)
  })
})

/** Fills tables after they were analysed nearly empty, so that their statistics are wrong. */
async function filledDatabase(
  t: Test,
  shape: Shape,
): Promise<{ client: pg.PoolClient; session: pg.PoolClient }> {
  const { pool } = await testDatabase(t, { instrumented: false, poolMax: 2 })
  const [client, session] = await Promise.all([pool.connect(), pool.connect()])
  t.teardown(() => {
    client.release()
    session.release()
  })
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'rouse'`,
  )
  for (const { name } of rows)
    await client.query(`alter table ${name} set (autovacuum_enabled = off)`)
  await push(session, items('tiny', [1, 2]))
  await client.query('analyze')
  for (let round = 0; round < 3; round += 1) {
    const { leases } = await popOne(session, 'tiny', 1)
    await ack(
      session,
      leases.map(({ leaseId }) => ({ leaseId })),
    )
    await push(session, items('tiny', [1, 2]))
  }
  await fillTables(client, shape)
  return { client, session }
}

/** Removes statistics and row counts, as a crash or an upgrade of the server may do. */
async function forgetStatistics(client: pg.ClientBase): Promise<void> {
  const inRouse = `in (select oid from pg_class where relnamespace = 'rouse'::regnamespace)`
  await client.query('set allow_system_table_mods = on')
  await client.query(`delete from pg_statistic where starelid ${inRouse}`)
  await client.query(
    `update pg_class set relpages = 0, reltuples = -1, relallvisible = 0 where oid ${inRouse}`,
  )
  // The changes above do not invalidate plans.
  await client.query('reset allow_system_table_mods')
  await client.query('discard plans')
}

async function measureAll(
  client: pg.ClientBase,
  calls: readonly Measured[] = measured,
): Promise<Map<string, number>> {
  const pages = new Map<string, number>()
  for (const { name, measure } of calls) pages.set(name, await measure(client))
  return pages
}

function compare(
  t: Test,
  baseline: Map<string, number>,
  found: Map<string, number>,
  calls: readonly Measured[] = measured,
): void {
  for (const { name, lookups } of calls) {
    const before = Number(baseline.get(name))
    const now = Number(found.get(name))
    const most = before + lookups * extraPagesPerLookup
    t.ok(now <= most, `${name}: ${now} pages, ${before} when small, at most ${most}`)
  }
}

function popOne(executor: Executor, queue: string, batch: number): ReturnType<typeof pop> {
  return popFrom(executor, queue, [{ batch, partitions: 1, holder: 'test' }])
}

function popFrom(
  executor: Executor,
  queue: string,
  demands: readonly PopDemand[],
): ReturnType<typeof pop> {
  return pop(executor, { source: { queue }, group, demands })
}

function popAll(executor: Executor): ReturnType<typeof pop> {
  return popFrom(executor, 'wide', [{ batch: 1_000, partitions: 1_000, holder: 'test' }])
}

async function withWideLease(
  client: pg.ClientBase,
  call: (executor: Executor, leases: readonly Lease[]) => Promise<unknown>,
): Promise<number> {
  let leases: Lease[] = []
  return buffersOf(
    client,
    (executor) => call(executor, leases),
    async (executor) => {
      await push(executor, items('wide', await spread(client)))
      leases = (await popAll(executor)).leases
    },
  )
}

async function withLease(
  client: pg.ClientBase,
  call: (executor: Executor, lease: Lease) => Promise<unknown>,
): Promise<number> {
  let lease: Lease | undefined
  return buffersOf(
    client,
    (executor) => call(executor, lease as Lease),
    async (executor) => {
      lease = (await popOne(executor, 'deep', 10)).leases[0]
    },
  )
}

function items(queue: string, partitions: readonly number[]): NewMessage[] {
  return partitions.map((n) => ({
    queue,
    partition: `p${n}`,
    id: randomUUID(),
    payload: '{"some": "payload"}',
  }))
}

/** Returns a hundred partitions of queue `wide` whose ids are as far apart as possible. */
async function spread(client: pg.ClientBase): Promise<number[]> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = 'wide'`,
  )
  const step = Math.floor((rows[0]?.count ?? 0) / 100)
  return Array.from({ length: 100 }, (_, i) => 1 + i * step)
}
