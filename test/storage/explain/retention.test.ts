// The number of pages that a step of retention touches is proportional to the rows that it removes. Other
// load does not change this number.
import { testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { costOfStep, fillReused, fillSkewed } from '../support/retention-shape.ts'

/** For each removed row: its heap and index pages, its visibility map, and the pages read to find it. */
const pagesPerRowMax = 3
/** For each partition with nothing to remove: its row, the row of its queue, the message at its tail. */
const pagesPerPartitionMax = 6

async function openClient(t: Test): Promise<pg.PoolClient> {
  return (await openClients(t)).client
}

async function openClients(t: Test): Promise<{ client: pg.PoolClient; other: pg.PoolClient }> {
  const { pool } = await testDatabase(t, { instrumented: false, poolMax: 2 })
  const [client, other] = await Promise.all([pool.connect(), pool.connect()])
  t.teardown(() => {
    client.release()
    other.release()
  })
  const tables = ['partitions', 'messages', 'dedup', 'lanes']
  for (const table of tables)
    await client.query(`alter table rouse.${table} set (autovacuum_enabled = off)`)
  return { client, other }
}

async function onlyDue(client: pg.ClientBase, chore: string): Promise<void> {
  await client.query(
    `update rouse.chores set position = 0,
       next_at = case when name = $1 or (name = 'retention' and not exists (select from rouse.chores where name = $1))
         then now() else 'infinity' end`,
    [chore],
  )
}

test('a step costs what it removes from one partition, however many others there are', async (t) => {
  const [rows, cold] = [2_000, 20_000]
  const client = await openClient(t)
  await fillSkewed(client, { hot: 100_000, cold })
  for (const planned of ['never analysed', 'analysed as it is']) {
    if (planned === 'analysed as it is') await client.query('vacuum analyze')
    await onlyDue(client, 'retention')
    for (let step = 1; step <= 10; step += 1) {
      const { pages, removed } = await costOfStep(client, rows)
      t.equal(removed, rows)
      t.ok(pages <= rows * pagesPerRowMax, `${planned}, step ${step}: ${pages} pages`)
    }
  }
})

test('removed rows that cannot be vacuumed do not cost later steps anything', async (t) => {
  const rows = 2_000
  const { client, other } = await openClients(t)
  await fillSkewed(client, { hot: 100_000, cold: 100 })
  await client.query('vacuum analyze')
  await other.query('begin isolation level repeatable read')
  await other.query('select count(*) from rouse.queues')
  await onlyDue(client, 'retention')
  const pages: number[] = []
  for (let step = 0; step < 40; step += 1) pages.push((await costOfStep(client, rows)).pages)
  const last = Math.max(...pages.slice(-5))
  t.ok(last <= rows * pagesPerRowMax, `${pages[0]} pages in the first step, ${last} in the last`)
})

test('a round over partitions with nothing to remove costs one lookup each', async (t) => {
  const cold = 20_000
  const client = await openClient(t)
  await fillSkewed(client, { hot: 1, cold })
  await client.query('vacuum analyze')
  await onlyDue(client, 'retention')
  await costOfStep(client, 2_000)
  await onlyDue(client, 'retention')
  let [pages, steps, position] = [0, 0, -1]
  while (position !== 0 && steps < 1_000) {
    const cost = await costOfStep(client, 2_000)
    pages += cost.pages
    position = cost.position
    steps += 1
  }
  t.ok(pages <= cold * pagesPerPartitionMax, `${pages} pages for ${cold} partitions`)
})

test('the cost of expired keys is proportional to their number, also in reused space', async (t) => {
  const client = await openClient(t)
  await fillReused(client, { keysPerTick: 5_000, ticksPerWindow: 10, ticks: 40 })
  await client.query('vacuum analyze rouse.dedup')
  await onlyDue(client, 'dedup')
  let [pages, removed, steps, position] = [0, 0, 0, -1]
  while (position !== 0 && steps < 1_000) {
    const cost = await costOfStep(client, 100)
    pages += cost.pages
    removed += cost.removed
    position = cost.position
    steps += 1
  }
  t.equal(removed, 25_000)
  t.ok(
    pages <= removed * pagesPerRowMax,
    `${(pages / removed).toFixed(1)} pages a key, ${steps} steps`,
  )
})
