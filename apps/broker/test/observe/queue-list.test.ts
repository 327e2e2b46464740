// The list of queues of a large cluster: answered from memory, read from the database only while it is used.
import { testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { manyQueues } from '../support/many-queues.ts'

const queues = 10_000

test('a list of 10,000 queues is read from memory and costs few queries', async (t) => {
  const { api, reads } = await startWithQueues(t, queues)
  const first = (await api.get('/queues?limit=10000')).body
  t.equal(first.queues.length, queues, 'also the first, which has to ask the database')
  t.match(first.queues[0], { queue: 'q00001', ready: 1, options: { leaseTime: 300 }, held: null })
  const before = await reads()
  const lists = 30
  for (let i = 0; i < lists; i += 1) {
    const startedMs = performance.now()
    const { body } = await api.get('/queues?limit=10000')
    t.equal(body.queues.length, queues)
    t.comment(`${Math.round(performance.now() - startedMs)} ms with reading the response`)
  }
  const queries = (await reads()) - before
  t.ok(queries < lists / 2, `${queries} reads of all figures for ${lists} lists`)
})

test('pages and filters from memory are those of the database', async (t) => {
  const { api, reads } = await startWithQueues(t, queues)
  await api.post('/configure', { queue: 'ä', namespace: 'shop', task: 'mail' })
  await api.post('/configure', { queue: '😀', namespace: 'shop' })
  await api.post('/configure', { queue: 'ｚ', namespace: 'shop' })
  const filters = [
    'limit=3',
    'limit=2&offset=5',
    'search=9999',
    'namespace=shop',
    'namespace=shop&task=mail',
    'namespace=shop&limit=1&offset=1',
    `cursor=${cursor('q05000')}&limit=2`,
    `cursor=${cursor('q05000x')}&limit=2`,
    `cursor=${cursor('ｚ')}`,
    `cursor=${cursor('😀')}`,
  ]
  const read = async () => {
    const pages = []
    for (const filter of filters) pages.push((await api.get(`/queues?${filter}`)).body)
    return pages.map(({ queues: found, cursor: next }) => {
      return { next, names: found.map(({ queue }: { queue: string }) => queue) }
    })
  }
  const direct = await read()
  // A slow list makes the worker keep the figures.
  await api.get('/queues?limit=10000')
  await api.get('/queues?limit=10000')
  const before = await reads()
  const kept = await read()
  t.ok((await reads()) - before < filters.length, 'from memory')
  t.same(kept, direct)
  t.same(kept.at(-2)?.names, ['😀'], 'in the order of UTF-8')
  t.match(await api.get('/queues?limit=10001'), { status: 400 })
})

test('a short list is always exact', async (t) => {
  const { api } = await startWithQueues(t, 10)
  for (let n = 2; n < 6; n += 1) {
    await api.push({ queue: 'q00003', payload: n })
    t.match((await api.get('/queues?limit=10000')).body.queues[2], { queue: 'q00003', ready: n })
    t.equal((await api.get('/queues')).body.queues.length, 10)
  }
})

function cursor(name: string): string {
  return Buffer.from(name).toString('base64url')
}

/** One worker, so that every request finds what the last one left. */
async function startWithQueues(t: Test, count: number) {
  const database = await testDatabase(t, { content: manyQueues(count) })
  await database.pool.query(`
    create sequence rouse_test.reads;
    create or replace function rouse_test.barrier(name text) returns void language plpgsql as $$
    begin
      if name = 'figures-begun' then
        perform nextval('rouse_test.reads');
      end if;
    end $$;
  `)
  const node = await startBroker(t, { database, env: { ROUSE_WORKERS: '1' } })
  const reads = async (): Promise<number> => {
    const { rows } = await database.pool.query<{ reads: string }>(
      'select case when is_called then last_value else 0 end as reads from rouse_test.reads',
    )
    return Number(rows[0]?.reads)
  }
  return { api: apiOf(node.url), reads, database }
}
