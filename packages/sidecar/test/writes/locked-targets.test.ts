// A locked row delays only the writes that need it. These fail with `partition_locked`.

import { performance } from 'node:perf_hooks'
import type { AckItem, NewMessage } from '@rouse/storage'
import { eventually, type TestDatabase } from '@rouse/testkit'
import pg from 'pg'
import { type Test, test } from 'tap'
import type { SidecarDbPool } from '../../src/index.ts'
import { item, pushOne, spec, startSidecar } from '../support/start-sidecar.ts'

const producers = 60
const otherPushes = 60
const msMax = 1_000

test('pushes to locked partitions fail with partition_locked and do not fail pushes to other queues', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  const partitions = Array.from({ length: 12 }, (_, i) => `p${i}`)
  for (const partition of partitions) await pushOne(sidecar, item('a', { partition }))
  await pushOne(sidecar, item('b'))
  const user = await lock(t, database, partitionsOf('a'))

  const load = startProducers((n) =>
    pushOne(sidecar, item('a', { partition: partitions[n % partitions.length] as string })),
  )
  await eventually(() => isWaitingForLock(database))
  let slowestMs = 0
  for (let n = 0; n < otherPushes || load.failures.length === 0; n += 1) {
    const startedAt = performance.now()
    await pushOne(sidecar, item('b'))
    slowestMs = Math.max(slowestMs, performance.now() - startedAt)
  }
  t.ok(slowestMs < msMax, `the slowest took ${Math.round(slowestMs)} ms`)

  await user.query('commit')
  await eventually(() => load.accepted() > 0)
  await load.stop()
  const { rows } = await database.pool.query(
    `select sum(head - 1)::int as stored from rouse.partitions p join rouse.queues q on q.id = p.queue_id
     where q.name = 'a'`,
  )
  t.same([...new Set(load.failures)], ['partition_locked'])
  t.equal(rows[0].stored, partitions.length + load.accepted(), 'nothing is lost or duplicated')
})

test('a push that shares a call with one to a locked partition waits for one lock timeout', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  await pushOne(sidecar, item('a'))
  await pushOne(sidecar, item('b'))
  // The first push is sent alone. The others wait in the queue until it ends, and then share a call.
  const barrier = await database.armBarrier('push-locked')
  const first = pushOne(sidecar, item('b'))
  await barrier.reached()
  await lock(t, database, partitionsOf('a'))
  const shared = [item('a'), item('b'), item('a'), item('b')].map((one) => pushOne(sidecar, one))
  const startedAt = performance.now()
  await barrier.release()
  await first
  const [a1, b1, a2, b2] = await Promise.allSettled(shared.map((one) => timed(one, startedAt)))
  t.match([b1, b2], [{ status: 'fulfilled' }, { status: 'fulfilled' }])
  t.ok(Math.max(valueOf(b1), valueOf(b2)) < msMax)
  t.match(
    [a1, a2],
    [{ reason: { code: 'partition_locked' } }, { reason: { code: 'partition_locked' } }],
  )
})

test('other partitions of a queue with a locked partition accept pushes', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  for (const partition of ['p0', 'p1']) await pushOne(sidecar, item('a', { partition }))
  await lock(t, database, `${partitionsOf('a')} and name = 'p0'`)
  await t.rejects(pushOne(sidecar, item('a', { partition: 'p0' })), { code: 'partition_locked' })
  for (let n = 0; n < 20; n += 1) {
    const refused = t.rejects(pushOne(sidecar, item('a', { partition: 'p0' })), {
      code: 'partition_locked',
    })
    const startedAt = performance.now()
    await pushOne(sidecar, item('a', { partition: 'p1' }))
    const tookMs = performance.now() - startedAt
    t.ok(tookMs < msMax, `${Math.round(tookMs)} ms`)
    await refused
  }
})

test('a push to a locked and a free partition does not block pushes to the free one', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  await pushOne(sidecar, item('a'))
  await pushOne(sidecar, item('b'))
  await lock(t, database, partitionsOf('a'))
  for (let n = 0; n < 3; n += 1) {
    const both = sidecar.submit({ kind: 'PUSH', items: [item('a'), item('b')], bytes: 20 })
    await t.rejects(both, { code: 'partition_locked' })
    await pushOne(sidecar, item('b'))
  }
})

test('acks of a locked lane do not delay other acks', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  const ackOf = async (queue: string): Promise<AckItem> => {
    await pushOne(sidecar, item(queue))
    const {
      leases: [lease],
    } = await sidecar.submit({ kind: 'POP', pop: spec(queue) })
    return { leaseId: lease?.leaseId as string }
  }
  const stuck = [await ackOf('a0'), await ackOf('a1'), await ackOf('a2')]
  const others = await Promise.all(Array.from({ length: 20 }, (_, n) => ackOf(`b${n}`)))
  const user = await lock(
    t,
    database,
    `select from rouse.lanes where partition_id in (
       select p.id from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name like 'a%')`,
  )
  const refused = stuck.map((one) =>
    t.rejects(sidecar.submit({ kind: 'ACK', item: one }), { code: 'partition_locked' }),
  )
  await eventually(() => isWaitingForLock(database))
  for (const one of others) {
    const startedAt = performance.now()
    t.match(await sidecar.submit({ kind: 'ACK', item: one }), { accepted: true })
    const tookMs = performance.now() - startedAt
    t.ok(tookMs < msMax, `${Math.round(tookMs)} ms`)
  }
  await Promise.all(refused)
  await user.query('commit')
  for (const one of stuck) {
    const accepted = async () =>
      (await sidecar.submit({ kind: 'ACK', item: one }).catch(() => undefined))?.accepted === true
    await eventually(accepted)
  }
})

test('transactions that push to a locked partition do not delay other transactions', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  await pushOne(sidecar, item('a'))
  await pushOne(sidecar, item('b'))
  await lock(t, database, partitionsOf('a'))
  const transact = (queue: string) =>
    sidecar.submit({ kind: 'TRANSACTION', transaction: { acks: [], pushes: [item(queue)] } })
  const refused = Array.from({ length: 6 }, () =>
    t.rejects(transact('a'), { code: 'partition_locked' }),
  )
  await eventually(() => isWaitingForLock(database))
  for (let n = 0; n < 20; n += 1) {
    const startedAt = performance.now()
    await transact('b')
    const tookMs = performance.now() - startedAt
    t.ok(tookMs < msMax, `${Math.round(tookMs)} ms`)
  }
  await Promise.all(refused)
})

for (const [name, submit] of [
  ['pushes', (sidecar, items) => sidecar.submit({ kind: 'PUSH', items, bytes: 20 })],
  [
    'transactions',
    (sidecar, items) =>
      sidecar.submit({ kind: 'TRANSACTION', transaction: { acks: [], pushes: items } }),
  ],
] as [string, (sidecar: SidecarDbPool, items: NewMessage[]) => Promise<unknown>][]) {
  test(`${name} to a free and a locked queue do not delay those to the free one`, async (t) => {
    const { sidecar, database } = await startSidecar(t)
    await pushOne(sidecar, item('a'))
    await pushOne(sidecar, item('b'))
    await lock(t, database, partitionsOf('a'))
    const load = startProducers((n) =>
      submit(sidecar, [item('b', { partition: `p${n}` }), item('b'), item('a')]),
    )
    await eventually(() => load.failures.length > 0)
    let slowestMs = 0
    for (let n = 0; n < 20; n += 1) {
      const startedAt = performance.now()
      await submit(sidecar, [item('b')])
      slowestMs = Math.max(slowestMs, performance.now() - startedAt)
    }
    await load.stop()
    t.ok(slowestMs < msMax, `the slowest took ${Math.round(slowestMs)} ms`)
    t.equal(load.accepted(), 0)
    t.notOk(load.failures.includes('database_unavailable'))
  })
}

function partitionsOf(queue: string): string {
  return `select from rouse.partitions where queue_id = (select id from rouse.queues where name = '${queue}')`
}

/** Locks these rows in a user session, until its transaction or the test ends. */
async function lock(t: Test, database: TestDatabase, rows: string): Promise<pg.Client> {
  const user = new pg.Client(database.url)
  await user.connect()
  t.teardown(() => user.end())
  await user.query('begin')
  await user.query(`${rows} for update`)
  return user
}

async function isWaitingForLock({ pool }: TestDatabase): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length > 0
}

function startProducers(submit: (n: number) => Promise<unknown>) {
  const failures: string[] = []
  let accepted = 0
  let isPushing = true
  const pushing = Array.from({ length: producers }, async (_, producer) => {
    for (let n = producer; isPushing; n += producers) {
      await submit(n).then(
        () => (accepted += 1),
        async (error: { code: string }) => {
          failures.push(error.code)
          await new Promise(setImmediate)
        },
      )
    }
  })
  return {
    failures,
    accepted: () => accepted,
    async stop() {
      isPushing = false
      await Promise.all(pushing)
    },
  }
}

async function timed(work: Promise<unknown>, startedAt: number): Promise<number> {
  await work
  return performance.now() - startedAt
}

function valueOf(result: PromiseSettledResult<number> | undefined): number {
  return result?.status === 'fulfilled' ? result.value : Number.POSITIVE_INFINITY
}
