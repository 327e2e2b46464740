// The product under test: one node, called over HTTP, on a database whose clock the model moves.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { eventually, freePort, type TestDatabase, testDatabase } from '@rouse/testkit'
import pg from 'pg'
import { type ModelBug, seedFunctions, seedModules } from './bugs.ts'
import type { OpenTransaction } from './open-transaction.ts'
import { kept } from './operating.ts'

export interface Answer {
  readonly status: number
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- responses are what is being tested
  readonly body: any
}

export interface Product {
  readonly database: TestDatabase
  readonly call: (method: string, path: string, body?: unknown) => Promise<Answer>
  readonly sql: <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]>
  readonly setClock: (now: number) => Promise<void>
  /** Runs background jobs until nothing is due. Leases of open transactions stay. */
  readonly settle: (lockedLeases: readonly string[]) => Promise<void>
  /** A complete round of retention, which a node runs in steps. */
  readonly retain: () => Promise<void>
  readonly begin: (name: string) => Promise<OpenTransaction>
}

/** How long the product runs: it stops when the callbacks of `teardown` run, for example after a test. */
export interface Lifetime {
  teardown(end: () => unknown): void
}

export async function startProduct(life: Lifetime, bug?: ModelBug): Promise<Product> {
  const database = await testDatabase(life as Parameters<typeof testDatabase>[0], {
    instrumented: true,
    poolMax: 20,
  })
  if (bug !== undefined) await seedFunctions(database.pool, bug)
  // Retention runs only when the model calls it.
  await database.pool.query(
    `update rouse.chores set next_at = 'infinity' where name in ('retention', 'dedup', 'unique', 'history')`,
  )
  const url = await startNode(life, database.url, bug === undefined ? {} : seedModules(bug))
  const sql = async <Row>(text: string, values: readonly unknown[] = []) =>
    (await database.pool.query(text, [...values])).rows as Row[]
  const call = (method: string, path: string, body?: unknown) => send(url, method, path, body)
  return {
    database,
    call,
    sql,
    setClock: (now) => database.freezeClock(now),
    settle: (lockedLeases) => settle(sql, call, lockedLeases),
    retain: () => retain(sql),
    begin: (name) => begin(database.url, name),
  }
}

async function startNode(
  life: Lifetime,
  databaseUrl: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const port = await freePort()
  const main = fileURLToPath(new URL('../../apps/broker/dist/main.js', import.meta.url))
  const { PATH = '', HOME = '' } = process.env
  const settings = {
    PATH,
    HOME,
    ROUSE_DATABASE_URL: databaseUrl,
    ROUSE_PORT: String(port),
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_WORKERS: '1',
    ROUSE_LOG_LEVEL: 'error',
    ROUSE_DRAIN_DELAY_MS: '0',
    ...env,
  }
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: settings,
  })
  life.teardown(() => stop(child))
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => (await fetch(`${url}/ready`)).ok, { timeoutMs: 30_000 })
  return url
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** A body that is a string is sent as it is. */
async function send(url: string, method: string, path: string, body: unknown): Promise<Answer> {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    ...(body === undefined
      ? {}
      : {
          headers: { 'content-type': 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
  })
  const text = await answer.text()
  return { status: answer.status, text, body: text === '' ? undefined : JSON.parse(text) }
}

type Sql = Product['sql']

const steps = `select (select count(*) from rouse.promote_ready(1000))
  + (select count(*) from rouse.promote_scheduled(1000)) + (select count(*) from rouse.reap_step(1000))
  + (select count(*) from rouse.redrive_step('model'))`

/**
 * Makes unfinished removals due again: they pause until a time of the real clock, which the frozen clock
 * never reaches.
 */
const removals = `with due as (update rouse.removals set next_at = rouse.now() returning 1)
  update rouse.chores set next_at = rouse.now() where name = 'removal' and exists (select from due)`

const left = `select
  (select count(*) from rouse.scheduled where due_at <= rouse.now())
  + (select count(*) from rouse.redeliveries where not announced and due_at <= rouse.now())
  + (select count(*) from rouse.lanes where blocked_until <= rouse.now())
  + (select count(*) from rouse.groups where blocked_until <= rouse.now()) + (select count(*) from rouse.freed)
  + (select count(*) from rouse.leases where expires_at <= rouse.now() and id || '/' || partition_id <> all ($1))
  + (select count(*) from rouse.redrives where state = 'running') as due,
  (select count(*) from rouse.removals) as removals,
  (select count(*) from rouse.schedules where next_at <= rouse.now()) as ticks`

async function settle(
  sql: Sql,
  call: Product['call'],
  lockedLeases: readonly string[],
): Promise<void> {
  let isTold = false
  await eventually(
    async () => {
      const [row] = await sql<Record<'due' | 'removals' | 'ticks', string>>(left, [lockedLeases])
      const { due, removals: removing, ticks } = row as NonNullable<typeof row>
      if (due === '0' && removing === '0' && ticks === '0') return true
      if (due !== '0') await sql(steps)
      if (removing !== '0') {
        await sql(removals)
        await sql(`select rouse.removal_step('model')`)
      }
      // Only nodes compute the ticks of schedules. A redrive of an empty queue makes this node poll what is
      // due.
      if (ticks !== '0' && !isTold) {
        isTold = true
        await call('POST', '/configure', { queue: 'nudge' })
        await call('POST', '/dlq/redrive', { queue: 'nudge' })
      }
      return false
    },
    { timeoutMs: 20_000, intervalMs: 1 },
  )
}

async function retain(sql: Sql): Promise<void> {
  let after = '0'
  do {
    const rows = await unlessLockTimeout(() =>
      sql<{ kind: string; count: string }>(
        'select kind, count from rouse.retain($1, $2, $3, $4, null, 1000, 10000, $5)',
        [kept.completedMs, kept.deadMs, kept.tracesMs, kept.idlePartitionMs, after],
      ),
    )
    after = rows.find(({ kind }) => kind === 'next')?.count ?? '0'
  } while (after !== '0')
}

/**
 * Repeats a step that lost a race for a lock, as a node does: even a query with SKIP LOCKED can wait for a
 * lock.
 */
async function unlessLockTimeout<T>(step: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step()
    } catch (error) {
      if ((error as { code?: string }).code !== '55P03' || tries === 10) throw error
    }
  }
}

async function begin(url: string, name: string): Promise<OpenTransaction> {
  const client = new pg.Client({ connectionString: url, application_name: `model ${name}` })
  await client.connect()
  await client.query('begin')
  return {
    name,
    query: async (text, values = []) => (await client.query(text, [...values])).rows as unknown[],
    end: () => void client.end(),
    enqueued: [],
    acked: [],
    isFailed: false,
  }
}
