// The cost of one page of a list depends on that page, not on the number of other queues, partitions and dead
// letters. It is the number of database pages touched, as in delivery.test.ts.
import { deadLetters, stats, statsPage } from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { buffersOf } from '../support/buffers.ts'
import { fillManyQueues, type ManyQueues } from '../support/many-queues.ts'

const few: ManyQueues = {
  queues: 200,
  partitions: 1_000,
  messages: 5_000,
  leases: 200,
  letters: 2_000,
}
const many: ManyQueues = {
  queues: 5_000,
  partitions: 25_000,
  messages: 125_000,
  leases: 200,
  letters: 100_000,
}

const page = { after: 'q00050', limit: 100 }

async function filled(t: Test, shape: ManyQueues): Promise<pg.PoolClient> {
  const { pool } = await testDatabase(t, { instrumented: false, poolMax: 1 })
  const client = await pool.connect()
  t.teardown(() => client.release())
  await fillManyQueues(client, shape)
  await client.query('analyze')
  return client
}

test('the cost of a list depends only on its page', async (t) => {
  const [small, large] = [await filled(t, few), await filled(t, many)]
  const measures = {
    'a page of a hundred queues': (client: pg.ClientBase) =>
      buffersOf(client, (executor) => statsPage(executor, page)),
    'one queue': (client: pg.ClientBase) =>
      buffersOf(client, (executor) => stats(executor, 'q00070')),
    'letters that a filter finds': (client: pg.ClientBase) =>
      buffersOf(client, (executor) => deadLetters(executor, { errorCode: 'code1', limit: 10 })),
  }
  const most = {
    'a page of a hundred queues': 2,
    'one queue': 3,
    'letters that a filter finds': 100,
  }
  for (const [name, measure] of Object.entries(measures)) {
    const [before, after] = [await measure(small), await measure(large)]
    const allowed = before * most[name as keyof typeof most]
    t.ok(after <= allowed, `${name}: ${after} pages, ${before} where there are few`)
  }
  const { queues, partitions } = await counts(large)
  t.same([queues, partitions], [many.queues, many.partitions])
})

test('pages of queues are complete, in order, and without overlap', async (t) => {
  const client = await filled(t, few)
  const all = await stats(client)
  const paged: typeof all = []
  for (;;) {
    const next = await statsPage(client, { after: paged.at(-1)?.queue, limit: 37 })
    paged.push(...next)
    if (next.length < 37) break
  }
  t.equal(all.length, few.queues)
  t.same(paged, all)
  t.equal(
    all.reduce((sum, queue) => sum + queue.messages, 0),
    few.messages,
  )
})

test('dead letters are counted no further than ten thousand beyond their page', async (t) => {
  const client = await filled(t, { ...few, letters: 12_000 })
  t.equal((await deadLetters(client, { limit: 10 })).total, 10_010)
  t.equal((await deadLetters(client, { limit: 10, offset: 5_000 })).total, 12_000)
  t.equal((await deadLetters(client, { errorCode: 'code1', limit: 10 })).total, 2_400)
})

async function counts(client: pg.ClientBase): Promise<{ queues: number; partitions: number }> {
  const { rows } = await client.query(
    `select (select count(*) from rouse.queues)::int as queues, (select count(*) from rouse.partitions)::int as partitions`,
  )
  return rows[0]
}
