import { eventually, pgbouncerMissing, startPgbouncer, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { checkAccess, checkTransport } from '../src/commands/cluster/doctor-checks/access-checks.ts'
import { sharedNode } from './support/node.ts'
import { rouse } from './support/rouse.ts'

const node = await sharedNode(['--retention-interval-ms=200'])
const options = { skip: pgbouncerMissing, timeout: 60_000 }

test(
  'the doctor detects a pooler, and whether nodes would LISTEN through it',
  options,
  async (t) => {
    const { url } = await testDatabase(t, { instrumented: false })
    const pgbouncer = await startPgbouncer(url)
    t.teardown(() => pgbouncer.stop())
    const through = { ROUSE_DATABASE_URL: pgbouncer.through(url) }
    for (const [env, pooler, listen] of [
      [{ ROUSE_DATABASE_URL: url }, /^no pooler/, 'ok'],
      [through, /^behind a pooler/, 'warning'],
      [{ ...through, ROUSE_LISTEN_URL: url }, /^behind a pooler/, 'ok'],
    ] as const) {
      const { findings } = await doctor(env)
      t.match(
        findings.find(({ check }) => check === 'pooler'),
        { state: 'ok', what: pooler },
      )
      t.match(
        findings.find(({ check }) => check === 'listen'),
        { state: listen },
      )
    }
  },
)

test('an unreachable database is a finding, not a crash', async (t) => {
  const { findings, err } = await doctor({ ROUSE_DATABASE_URL: 'postgres://127.0.0.1:9/rouse' })
  t.match(
    findings.find(({ check }) => check === 'database'),
    { state: 'problem', what: /ECONNREFUSED/ },
  )
  t.equal(err, 'rouse: 2 problems found\n')
})

test('an invalid LISTEN address does not hide other findings', async (t) => {
  const { url } = await testDatabase(t, { instrumented: false })
  const env = { ROUSE_DATABASE_URL: url, ROUSE_LISTEN_URL: 'postgres://one,,two/rouse' }
  const { findings } = await doctor(env)
  t.match(
    findings.find(({ check }) => check === 'listen'),
    { state: 'problem', what: /empty host/ },
  )
  t.match(
    findings.find(({ check }) => check === 'schema'),
    { state: 'ok' },
  )
})

test('the doctor names nodes with different defaults, and the value of each', async (t) => {
  const first = await sharedNode(['--node-id=node-1', '--default-ttl=60', '--default-priority=1'])
  const flags = ['--node-id=node-2', '--default-retry-backoff-ms=1,2', '--default-priority=1']
  await sharedNode(flags, first.database)
  const bothSeen = async () => (await first.call('GET', '/stats?scope=cluster')).totals.nodes === 2
  await eventually(bothSeen, { timeoutMs: 30_000 })
  const { out } = await rouse(['doctor', '--url', first.url])
  const findings = JSON.parse(out) as { check: string; state: string; what: string }[]
  t.match(
    findings.filter(({ check }) => check === 'defaults'),
    [
      { state: 'warning', what: /of retryBackoffMs .*\(node-1: not set, node-2: \[1,2\]\)/ },
      { state: 'warning', what: /of ttl .*\(node-1: 60, node-2: not set\)/ },
    ],
  )
})

test('the doctor names defaults that no running node has', async (t) => {
  const left = await sharedNode(['--node-id=node-1', '--default-priority=1'])
  const gone = await sharedNode(['--default-ttl=60', '--default-priority=1'], left.database)
  await gone.stop()
  await left.call('POST', '/api/v1/push', { items: [{ queue: 'new', payload: 1 }] })
  t.match(await left.call('GET', '/api/v1/resources/queues/new'), { options: { ttl: 60 } })
  const env = { ROUSE_DATABASE_URL: left.database.url }
  const { out } = await rouse(['doctor', '--url', left.url], { env })
  const findings = JSON.parse(out) as { check: string; state: string; what: string }[]
  t.match(
    findings.filter(({ check }) => check === 'defaults'),
    [{ state: 'warning', what: /^new queues get 60 for ttl, .*\(node-1: not set\)/ }],
  )
  t.equal(findings.filter(({ check }) => check === 'defaults').length, 1)
})

test('the doctor names a consumer group that holds back retention', {
  timeout: 60_000,
}, async (t) => {
  const items = [{ queue: 'orders', payload: 1 }]
  await node.call('POST', '/api/v1/push', { items })
  await node.call('GET', '/api/v1/pop/queue/orders?consumerGroup=gone&partitions=1&autoAck=true')
  await node.call('POST', '/api/v1/push', { items: [...items, ...items] })
  const findings = async () => {
    const { out } = await rouse(['doctor'], { env: { ROUSE_URL: node.url } })
    const all = JSON.parse(out) as { check: string; state: string; what: string }[]
    return all.filter(({ check }) => check === 'retention')
  }
  t.same(await findings(), [])
  await node.database.pool.query(
    `update rouse.groups set last_seen_at = now() - interval '25 hours'`,
  )
  await eventually(async () => (await findings()).length > 0, { timeoutMs: 20_000 })
  t.match(await findings(), [
    {
      state: 'warning',
      what: /^consumer group "gone" of queue "orders" has made no request since 20.* keeps 2 messages .* until 20/,
    },
  ])
})

test('the doctor compares the clock of each node with the database', {
  timeout: 60_000,
}, async (t) => {
  const database = await testDatabase(t, { instrumented: true })
  const skewed = await sharedNode(['--node-id=node-9'], database)
  const clockOf = async (url: string) => {
    const { out } = await rouse(['doctor', '--url', url])
    const all = JSON.parse(out) as { check: string; state: string; what: string }[]
    return all.find(({ check }) => check === 'clock')
  }
  const agrees = { state: 'ok', what: /^node-9 and the database agree on the time$/ }
  t.match(await clockOf(skewed.url), agrees)
  await database.freezeClock(Date.now() + 3_600_000)
  // The delayed message makes the node query due times, and with them the clock of the database.
  await skewed.call('POST', '/api/v1/push', { items: [{ queue: 'q', payload: 1, delayMs: 1 }] })
  const isSkewed = async () => (await skewed.call('GET', '/stats')).time.skewMs > 1_000
  await eventually(isSkewed, { timeoutMs: 30_000 })
  t.match(await clockOf(skewed.url), {
    state: 'warning',
    what: /^the clock of node-9 differs by 3[56]\d{5} ms from the database$/,
  })
})

test('the doctor names every setting that nodes must override, and how to reset it', async (t) => {
  const { url, pool } = await testDatabase(t, { instrumented: false })
  const name = url.split('/').at(-1)
  const clean = await doctor({ ROUSE_DATABASE_URL: url })
  t.match(
    clean.findings.filter(({ check }) => check === 'settings'),
    [{ state: 'ok' }],
  )
  const hostile = {
    default_transaction_isolation: `'repeatable read'`,
    DateStyle: `'German'`,
    extra_float_digits: '-3',
    standard_conforming_strings: 'off',
    array_nulls: 'off',
    client_min_messages: 'error',
    search_path: 'trap, public',
    lock_timeout: `'2s'`,
    statement_timeout: `'30s'`,
    idle_in_transaction_session_timeout: `'30s'`,
    idle_session_timeout: `'30s'`,
  }
  await pool.query(`create schema trap;
    create function trap.array_position(text[], text) returns int language sql as 'select 1'`)
  for (const [setting, value] of Object.entries(hostile)) {
    await pool.query(`alter database ${name} set ${setting} = ${value}`)
  }
  const { findings } = await doctor({ ROUSE_DATABASE_URL: url })
  const found = findings.filter(({ check }) => check === 'settings')
  for (const setting of Object.keys(hostile)) {
    t.match(
      found.find(({ what }) => what.startsWith(`${setting} is `)),
      { state: 'warning', fix: `as its owner: alter database ${name} reset ${setting}` },
      setting,
    )
  }
  t.equal(found.length, Object.keys(hostile).length)

  await pool.query(`alter database ${name} set default_transaction_read_only = on`)
  const readOnly = await doctor({ ROUSE_DATABASE_URL: url })
  t.match(
    readOnly.findings.find(({ state, check }) => check === 'settings' && state === 'problem'),
    { what: /^default_transaction_read_only is on/ },
  )
})

test('a timeout too short for the doctor itself is reported and does not hide other findings', async (t) => {
  const { url, pool } = await testDatabase(t, { instrumented: false })
  const name = url.split('/').at(-1)
  const { rows } = await pool.query(
    `select name from pg_settings where name = 'transaction_timeout'`,
  )
  const timeouts = ['statement_timeout', ...rows.map((row) => row.name as string)]
  for (const setting of timeouts) {
    await pool.query(`alter database ${name} set ${setting} = '25ms'`)
  }
  const { findings } = await doctor({ ROUSE_DATABASE_URL: url })
  for (const setting of timeouts) {
    t.match(
      findings.find(({ what }) => what.startsWith(`${setting} is 25: `)),
      { state: 'warning', fix: `as its owner: alter database ${name} reset ${setting}` },
      setting,
    )
  }
  t.match(
    findings.find(({ check }) => check === 'schema'),
    { state: 'ok' },
  )
})

/** Runs the doctor without a node, which is a finding of its own. */
async function doctor(env: Readonly<Record<string, string>>) {
  const { out, err } = await rouse(['doctor', '--url', 'http://127.0.0.1:9'], { env })
  return {
    err,
    findings: JSON.parse(out) as { check: string; state: string; what: string; fix?: string }[],
  }
}

test('the doctor says whether the login of the nodes owns the schema', async (t) => {
  const { url, pool } = await testDatabase(t, { instrumented: false })
  const loginOf = async (at: string) => {
    const { findings } = await doctor({ ROUSE_DATABASE_URL: at })
    return findings.find(({ check }) => check === 'login')
  }
  t.match(await loginOf(url), { state: 'warning', what: /owns the schema/ })
  const name = `rouse_test_${process.pid}`
  await pool.query(`create role ${name} login password 'x' in role rouse_node`)
  t.teardown(() => pool.query(`drop role ${name}`))
  const own = Object.assign(new URL(url), { username: name, password: 'x' })
  t.match(await loginOf(own.href), { state: 'ok', what: /does not own the schema/ })
})

test('a role that was created after the schema gets its privileges from rouse migrate', async (t) => {
  const { url, pool } = await testDatabase(t, { instrumented: false })
  // The role is shared by all databases of the server; its privileges are those of this one.
  await pool.query('revoke usage on schema rouse from rouse_producer')
  const env = { ROUSE_DATABASE_URL: url }
  const found = async () => (await doctor(env)).findings.filter(({ check }) => check === 'roles')
  t.match(await found(), [{ state: 'warning', what: /rouse_producer/, fix: /rouse migrate/ }])
  const migrated = await rouse(['migrate'], { env })
  t.match(JSON.parse(migrated.out), { applied: [], granted: ['rouse_producer'] })
  t.same(await found(), [])
  t.match(JSON.parse((await rouse(['migrate'], { env })).out), { granted: [] })
})

test('the doctor names open nodes and keys that cross a network without TLS', async (t) => {
  t.match(checkAccess({ node: 'a', access: 'insecure' }), [{ state: 'problem', fix: /rouse keys/ }])
  t.match(checkAccess({ node: 'a', access: 'loopback' }), [{ state: 'ok', what: /no API key/ }])
  t.same(checkAccess({ node: 'a', access: 'keys' }), [])
  for (const url of [
    'https://q.example',
    'http://127.0.0.1:4600',
    'http://localhost',
    'http://[::1]',
  ]) {
    t.same(checkTransport(url), [], url)
  }
  for (const url of ['http://q.example', 'http://10.0.0.1:4600', 'http://[fd00::1]']) {
    t.match(checkTransport(url), [{ state: 'warning', fix: /ROUSE_TLS_CERT/ }], url)
  }
})
