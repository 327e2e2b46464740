// The network drops all packets of open connections, while the server accepts new connections.
import { test } from 'tap'
import { createPool } from '../../src/index.ts'
import { lossyProxy } from '../support/lossy-proxy.ts'
import { emptyDatabase } from '../support/server.ts'

/** The loss is detected after about 3.5 s on an idle machine. */
const noticedMsMax = 20_000

test('a statement on a lost connection fails, and a slow one continues', {
  timeout: 60_000,
}, async (t) => {
  const { url } = await emptyDatabase(t)
  const proxy = await lossyProxy(t, url)
  const open = () => createPool({ url: proxy.url, max: 4, applicationName: 'lost flows' })
  const [pool, slowPool] = [open(), open()]
  t.teardown(() => Promise.all([pool.end(), slowPool.end()]))
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
  const [holder, ...idle] = clients
  for (const client of idle) client.release()
  proxy.loseFlows()

  const slow = slowPool.query('select pg_sleep(6) is not null as done')
  const begunAt = performance.now()
  await t.rejects(holder.query('select 1'), /runs no statement of this connection/)
  const tookMs = performance.now() - begunAt
  t.ok(tookMs < noticedMsMax, `detected after ${Math.round(tookMs)} ms`)
  holder.release(true)
  const askedAt = performance.now()
  t.same((await pool.query('select 1 as one')).rows, [{ one: 1 }])
  t.ok(performance.now() - askedAt < 1_500, 'idle connections are not tried one after another')
  t.same((await slow).rows, [{ done: true }], 'the server is working on it')
})

test('a result that was lost in transit is detected, although the server has sent it', {
  timeout: 60_000,
}, async (t) => {
  const { url, pool: direct } = await emptyDatabase(t)
  const proxy = await lossyProxy(t, url)
  const pool = createPool({ url: proxy.url, max: 2, applicationName: 'lost answers' })
  t.teardown(() => pool.end())
  await direct.query('create table said (at timestamptz)')
  const asked = pool.query('insert into public.said select now() from pg_sleep(1)')
  await direct.query(`do $$ begin
    while not exists (select from pg_stat_activity where query like 'insert into public.said%' and state = 'active')
    loop perform pg_sleep(0.01), pg_stat_clear_snapshot(); end loop;
  end $$`)
  proxy.loseFlows()
  await t.rejects(asked, /runs no statement of this connection/)
  t.equal((await direct.query('select from said')).rowCount, 1, 'the insert happened')
})
