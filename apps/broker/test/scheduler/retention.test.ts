// One node at a time runs retention for the cluster. Another node continues when that node dies.
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { stateOf } from '../support/node-state.ts'

const dayMs = 86_400_000

async function count(database: TestDatabase, table: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: string }>(`select count(*) n from rouse.${table}`)
  return Number(rows[0]?.n)
}

/** Starts a round of each kind of retention, and resolves when all of them have ended. */
async function untilRound(database: TestDatabase): Promise<void> {
  const jobs = `name in ('retention', 'dedup', 'history')`
  await database.pool.query(
    `update rouse.chores set next_at = rouse.now(), position = 0, last_at = null where ${jobs}`,
  )
  await eventually(
    async () => {
      await database.advanceClock(50) // on a frozen clock the next step would never be due
      const { rows } = await database.pool.query(
        `select from rouse.chores where ${jobs} and (last_at is null or position <> 0)`,
      )
      return rows.length === 0
    },
    { timeoutMs: 15_000 },
  )
}

test('consumed messages are removed after their retention; unconsumed and leased ones stay', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const node = await startBroker(t, { database })
  const api = apiOf(node.url)
  for (const queue of ['consumed', 'waiting', 'held', 'idle']) {
    await api.push(...Array.from({ length: 10 }, (_, i) => ({ queue, payload: i })))
  }
  await api.pop('consumed', '?batch=10&autoAck=true')
  await api.pop('idle', '?batch=10&autoAck=true')
  await api.pop('held', '?batch=5&leaseSeconds=86400')
  await database.advanceClock(dayMs + 1_000)
  await untilRound(database)
  const left = async (queue: string): Promise<number> => {
    const { rows } = await database.pool.query<{ n: string }>(
      `select count(*) n from rouse.messages m join rouse.partitions p on p.id = m.partition_id
       join rouse.queues q on q.id = p.queue_id where q.name = $1`,
      [queue],
    )
    return Number(rows[0]?.n)
  }
  t.equal(await left('consumed'), 0)
  t.equal(await left('idle'), 0, 'although the queue was not used since')
  t.equal(await left('waiting'), 10, 'not consumed')
  t.equal(await left('held'), 10, 'the first ones are leased')
  await database.advanceClock(8 * dayMs)
  await untilRound(database)
  const { rows } = await database.pool.query(
    `select q.name from rouse.partitions p join rouse.queues q on q.id = p.queue_id order by 1`,
  )
  t.same(
    rows.map(({ name }) => name),
    ['held', 'waiting'],
    'empty and idle partitions are removed',
  )
})

test('a message whose retry is due in five minutes survives a retention of sixty seconds', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const node = await startBroker(t, { database })
  const api = apiOf(node.url)
  await api.post('/configure', { queue: 'q', options: { completedRetentionSeconds: 60 } })
  const [partition, queue] = ['p', 'q']
  await api.push({ queue, partition, payload: 'again' }, { queue, partition, payload: 'after' })
  const { body } = await api.pop('q')
  await api.ack(body.messages[0], 'retry', { delayMs: 300_000 })
  await database.advanceClock(200_000)
  await untilRound(database)
  t.equal(await count(database, 'messages'), 2)
  await database.advanceClock(100_001)
  const again = await api.pop('q', '?wait=true&timeout=10000')
  t.match(again.body.messages, [{ data: 'again', attempt: 1 }])
})

test('dead letters, their attempts and traces have their own retention', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const node = await startBroker(t, {
    database,
    env: { ROUSE_DEAD_LETTER_RETENTION_SECONDS: '3600', ROUSE_TRACE_RETENTION_SECONDS: '600' },
  })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 1 })
  const { body } = await api.pop('q')
  await api.ack(body.messages[0], 'dlq', { error: 'no' })
  await database.pool.query(
    `insert into rouse.traces (partition_id, transaction_id, data, created_at) values (1, 'a', '{}', rouse.now())`,
  )
  const counts = async () => ({
    dead: await count(database, 'dead_letters'),
    attempts: await count(database, 'attempts'),
    traces: await count(database, 'traces'),
  })
  await database.advanceClock(601_000)
  await untilRound(database)
  t.same(await counts(), { dead: 1, attempts: 1, traces: 0 })
  await database.advanceClock(3_600_000)
  await untilRound(database)
  t.same(await counts(), { dead: 0, attempts: 0, traces: 0 })
})

test('an idle group stops keeping messages, with one warning in the cluster', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const nodes = await Promise.all(
    ['a', 'b'].map((id) => {
      const env = { ROUSE_NODE_ID: id, ROUSE_WORKERS: '1', ROUSE_IDLE_GROUP_SECONDS: '3600' }
      return startBroker(t, { database, env })
    }),
  )
  const node = nodes[0] as (typeof nodes)[0]
  const api = apiOf(node.url)
  await api.push(...Array.from({ length: 10 }, (_, i) => ({ queue: 'q', payload: i })))
  await api.pop('q', '?consumerGroup=busy&batch=10&autoAck=true')
  await api.pop('q', '?consumerGroup=gone&batch=1&autoAck=true')
  await database.advanceClock(dayMs + 1_000)
  await api.pop('q', '?consumerGroup=busy')
  await untilRound(database)
  t.equal(await count(database, 'messages'), 0)
  const warnings = () =>
    nodes.flatMap(({ log }) =>
      log.filter(({ msg }) => String(msg).includes('may be removed before this group gets them')),
    )
  await eventually(() => warnings().length > 0)
  for (let round = 0; round < 3; round += 1) await untilRound(database)
  t.match(warnings(), [{ queue: 'q', consumerGroup: 'gone', lastSeenAt: /^2030-01-01T00:00/ }])
})

test('a waiting consumer keeps its group active, even without messages for weeks', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  // A consumer's request makes a query at least every six intervals, here 60 ms; only the database's clock
  // jumps by days.
  const node = await startBroker(t, { database, env: { POP_WAIT_IDLE_INTERVAL_MS: '10' } })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 1 })
  await api.pop('q', '?consumerGroup=waits&autoAck=true')
  await api.pop('q', '?consumerGroup=gone')
  for (let day = 0; day < 16; day += 1) {
    await database.advanceClock(dayMs)
    // One request after another, as a consumer sends them. Each ends without a message.
    t.equal((await api.pop('q', '?consumerGroup=waits&wait=true&timeout=100')).status, 204)
    await untilRound(database)
    const { rows } = await database.pool.query(
      `select g.name from rouse.idle_groups i join rouse.groups g on g.id = i.group_id order by 1`,
    )
    t.same(rows, [{ name: 'gone' }], `after ${day + 1} days`)
  }
})

test('a group that holds back retention is named by /stats of every node', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const nodes = await Promise.all(
    ['a', 'b'].map((id) => {
      const env = { ROUSE_NODE_ID: id, ROUSE_WORKERS: '1', ROUSE_RETENTION_INTERVAL_MS: '200' }
      return startBroker(t, { database, env })
    }),
  )
  const api = apiOf(nodes[0]?.url as string)
  await api.push({ queue: 'q', payload: 1 }, { queue: 'q', payload: 2 })
  await api.pop('q', '?consumerGroup=g&autoAck=true')
  await database.advanceClock(dayMs)
  for (const node of nodes) {
    await eventually(
      async () => {
        await database.advanceClock(200)
        return (await stateOf(node)).retention.held_by.length === 1
      },
      { timeoutMs: 15_000 },
    )
    t.match((await stateOf(node)).retention.held_by, [
      {
        queue: 'q',
        consumerGroup: 'g',
        lastSeenAt: '2030-01-01T00:00:00.000Z',
        messages: 1,
        oldestAt: '2030-01-01T00:00:00.000Z',
        until: /^2030-01-15T00:00:0/,
      },
    ])
  }
})

test('expired deduplication keys are removed in steps, however many expire in one round', async (t) => {
  const database = await testDatabase(t)
  await startBroker(t, { database })
  const steps = async () => {
    const { rows } = await database.pool.query(
      `select steps::int from rouse.chores where name = 'dedup'`,
    )
    return Number(rows[0].steps)
  }
  await database.pool.query(
    `insert into rouse.dedup (partition_id, key, message_id, expires_at)
     select 1, n::text, gen_random_uuid(), rouse.now() from generate_series(1, 50000) n`,
  )
  const before = await steps()
  await untilRound(database)
  t.equal(await count(database, 'dedup'), 0)
  t.ok((await steps()) >= before + 5, 'in steps')
})

test('retention skips a locked partition and returns to it soon', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const node = await startBroker(t, { database })
  const api = apiOf(node.url)
  await api.post('/configure', { queue: 'q', options: { completedRetentionSeconds: 1 } })
  for (const partition of ['kept', 'other']) {
    await api.push({ queue: 'q', partition, payload: 1 })
    await api.pop('q', '?autoAck=true')
  }
  const keeper = await database.pool.connect()
  await keeper.query('begin')
  await keeper.query(`select from rouse.partitions where name = 'kept' for update`)
  await database.pool.query(
    `update rouse.chores set next_at = now() + interval '1100 ms' where name = 'retention'`,
  )
  await eventually(async () => (await count(database, 'messages')) === 1, { timeoutMs: 10_000 })
  await keeper.query('rollback')
  keeper.release()
  // Sooner than the next regular round: the interval between rounds is a minute.
  await eventually(async () => (await count(database, 'messages')) === 0, { timeoutMs: 10_000 })
  t.pass('gone')
})

test('another node continues retention within two seconds when the node that runs it is killed', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const nodes = await Promise.all(
    ['a', 'b'].map((id) => {
      const env = { ROUSE_NODE_ID: id, ROUSE_WORKERS: '1', ROUSE_RETENTION_INTERVAL_MS: '200' }
      return startBroker(t, { database, env })
    }),
  )
  const job = async (): Promise<{ holder: string; steps: string }> => {
    const { rows } = await database.pool.query(
      "select holder, steps from rouse.chores where name = 'retention'",
    )
    return rows[0]
  }
  const { holder } = await eventually(async () => {
    const now = await job()
    return now.holder === null ? undefined : now
  })
  const victim = nodes[holder === 'a' ? 0 : 1]
  const killedAt = performance.now()
  victim?.child.kill('SIGKILL')
  await victim?.exited
  const before = await job()
  const other = holder === 'a' ? 'b' : 'a'
  await eventually(async () => {
    const now = await job()
    return now.holder === other && Number(now.steps) > Number(before.steps)
  })
  const tookMs = performance.now() - killedAt
  t.ok(tookMs < 2_000, `after ${tookMs} ms`)
})

test('two nodes never run a step of retention at the same time', async (t) => {
  const database = await testDatabase(t)
  const barrier = await database.armBarrier('retention-step-locked')
  const env = { ROUSE_WORKERS: '1', ROUSE_RETENTION_INTERVAL_MS: '100' }
  const nodes = await Promise.all([1, 2].map(() => startBroker(t, { database, env })))
  await barrier.reached(1)
  await eventually(async () => {
    const states = await Promise.all(nodes.map(stateOf))
    return states.every(({ time }) => time.looks >= 3)
  })
  t.equal((await barrier.reached(1)).pids.length, 1, 'one holds the row, the other skipped it')
  await barrier.release()
})

test('a node takes no step of redrives or removals while only retention is due', async (t) => {
  const database = await testDatabase(t)
  const name = new URL(database.url).pathname.slice(1)
  await database.pool.query(`alter database "${name}" set track_functions = 'pl'`)
  await startBroker(t, { database, env: { ROUSE_RETENTION_INTERVAL_MS: '100' } })
  const calls = async () => {
    const { rows } = await database.pool.query<{ name: string; calls: number }>(
      `select funcname as name, calls::float8 from pg_stat_user_functions where funcname = any ($1)`,
      [['retention_step', 'redrive_step', 'removal_step']],
    )
    return new Map(rows.map((row) => [row.name, row.calls]))
  }
  // Sessions report their counts after ten seconds at the latest.
  await eventually(async () => ((await calls()).get('retention_step') ?? 0) >= 10, {
    timeoutMs: 30_000,
  })
  const found = await calls()
  t.same([found.get('redrive_step') ?? 0, found.get('removal_step') ?? 0], [0, 0])
})
