// Two releases run on one database, as real processes with their own migrations.
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { freePort } from '@rouse/database'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { spawnBroker, startBroker } from '../support/broker.ts'
import { apiOf, send } from '../support/http.ts'
import { release, releaseTree } from '../support/release-tree.ts'

const options = { timeout: 120_000 }

/** A migration that needs ACCESS EXCLUSIVE on the table that every enqueue and delayed push writes to. */
const change = (worksWith: number) =>
  `-- works-with: ${worksWith}\nalter table rouse.scheduled add column next_release integer;`

/** Time for three tries: in each, the node waits 0.2 s for the lock and then pauses for 2 s. */
const triesSeconds = 6

/** Shorter than the pause between two tries, for which no push may wait. */
const stallMsMax = 1_500

test(
  'an upgrade blocked by an open transaction waits, reports it in /ready, and stalls no other node',
  options,
  async (t) => {
    const older = await startBroker(t)
    const { database } = older
    const user = await database.pool.connect()
    t.teardown(() => user.release(true))
    await user.query(`begin; select rouse.enqueue('q', '"held"')`)
    const { rows } = await user.query('select pg_backend_pid() as pid')

    const main = releaseTree(t, {
      version: release + 1,
      migrations: { '9999_next.sql': change(release) },
    })
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const env = { ROUSE_PORT: String(port), ROUSE_WORKERS: '1' }
    const starting = startBroker(t, { database, main, env })
    starting.catch(() => {})
    const waiting = await eventually(
      async () => {
        const answer = await send('GET', `${url}/ready`)
        return /9999_next/.test(answer.body?.detail ?? '') && answer
      },
      { timeoutMs: 30_000 },
    )
    t.equal(waiting.status, 503)
    t.equal(waiting.headers.get('retry-after'), '1')
    t.match(waiting.body, {
      code: 'starting',
      detail: new RegExp(
        `^9999_next\\.sql waits for rouse\\.scheduled: process ${rows[0].pid} \\(.*idle in transaction\\), .* s old$`,
      ),
    })
    t.match(await send('GET', `${url}/live`), { status: 200, body: { status: 'live' } })
    t.match(await send('POST', `${url}/api/v1/push`, { items: [] }), {
      status: 503,
      body: { code: 'starting' },
    })

    // The other node and SQL users keep working while the upgrading node tries several times.
    const api = apiOf(older.url)
    const ageOf = async () =>
      Number(/(\d+) s old$/.exec((await send('GET', `${url}/ready`)).body.detail)?.[1])
    const enoughSeconds = (await ageOf()) + triesSeconds
    let slowestMs = 0
    let pushes = 0
    do {
      const began = performance.now()
      const answers = await Promise.all([
        api.push({ queue: 'plain', payload: 1 }),
        api.push({ queue: 'delayed', payload: 1, delayMs: 1 }),
        database.pool.query(`select rouse.enqueue('other', '1')`).then(() => ({ status: 201 })),
      ])
      pushes += answers.filter(({ status }) => status === 201).length
      if (answers.some(({ status }) => status !== 201)) t.fail(JSON.stringify(answers))
      slowestMs = Math.max(slowestMs, performance.now() - began)
    } while ((await ageOf()) < enoughSeconds)
    t.comment(`${pushes} writes, the slowest took ${Math.round(slowestMs)} ms`)
    t.ok(slowestMs < stallMsMax, `the slowest took ${Math.round(slowestMs)} ms`)

    await user.query('commit')
    const newer = await starting
    const waits = newer.log.filter(
      ({ msg }) => msg === 'waiting for a lock before migrating the database',
    )
    t.equal(waits.length, 1, 'one line per minute')
    t.match(waits[0], { level: 'warn', reason: /rouse\.scheduled/ })

    await t.test(
      'the older release restarts on the newer schema and does not change it',
      async (t) => {
        await older.stop()
        const again = await startBroker(t, { database })
        await apiOf(again.url).push({ queue: 'between', payload: 'releases' })
        const answer = await apiOf(newer.url).pop(
          'between',
          '?wait=true&timeout=10000&autoAck=true',
        )
        t.match(answer.body, { messages: [{ data: 'releases' }] })
        const sets = await database.pool.query(
          'select max(version) as newest from rouse.function_sets',
        )
        t.same(sets.rows, [{ newest: release + 1 }])
        await again.stop()
      },
    )
  },
)

test(
  'a node does not start on a schema that its release does not work with',
  options,
  async (t) => {
    const database = await testDatabase(t, { instrumented: false })
    const main = releaseTree(t, {
      version: release + 1,
      migrations: { '9999_next.sql': change(release + 1) },
    })
    const env = { ROUSE_DATABASE_URL: database.url, ROUSE_GOSSIP_PORT: '0', ROUSE_PORT: '0' }
    const newer = await startBroker(t, { database, main })
    const older = spawnBroker(env)
    const [log, [code]] = await Promise.all([text(older.stdout), once(older, 'exit')])
    t.equal(code, 1)
    t.match(log, /schema_newer/)
    t.match(log, /9999_next\.sql, which works with release/)
    t.equal((await apiOf(newer.url).push({ queue: 'q', payload: 1 })).status, 201)
  },
)

test(
  'a node that is stopped while it waits for the database exits with code 0',
  options,
  async (t) => {
    const database = await testDatabase(t, { instrumented: false })
    const user = await database.pool.connect()
    t.teardown(() => user.release(true))
    await user.query('begin; lock table rouse.scheduled in row exclusive mode')
    const main = releaseTree(t, {
      version: release + 1,
      migrations: { '9999_next.sql': change(release) },
    })
    const port = await freePort()
    const child = spawnBroker(
      { ROUSE_DATABASE_URL: database.url, ROUSE_PORT: String(port) },
      [],
      main,
    )
    const exited = once(child, 'exit')
    await eventually(
      async () =>
        /waits for/.test((await send('GET', `http://127.0.0.1:${port}/ready`)).body.detail),
      { timeoutMs: 30_000 },
    )
    child.kill('SIGTERM')
    t.same(await exited, [0, null])
  },
)
