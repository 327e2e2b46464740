// A node whose login owns nothing, with all its background work. All its secrets are planted, and none of them appears
// in what the node answers, logs, or shows of its processes.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { eventually, testDatabase } from '@rouse/testkit'
import { type Test, test, t as wholeFile } from 'tap'
import { newApiKey } from '../../src/auth/api-key.ts'
import { type Answer, ackOf } from '../support/http.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'
import { childrenOf } from '../support/process-tree.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { nodeLogin } from './support/node-login.ts'

const timeout = 60_000
const patience = { timeoutMs: 30_000 }
const database = await testDatabase(wholeFile as unknown as Test, { instrumented: false })
const login = await nodeLogin(wholeFile as unknown as Test, database)
const secret = () => randomBytes(32).toString('hex')
const { key: adminKey } = newApiKey(randomBytes)
const planted: Record<string, string> = {
  'database password': new URL(login.ROUSE_DATABASE_URL).password,
  'gossip secret': secret(),
  'encryption key': secret(),
  'admin key': adminKey.slice(19),
}
const { url, child, log } = await sharedBroker({
  database,
  env: {
    ...login,
    ROUSE_GOSSIP_SECRET: planted['gossip secret'] as string,
    ROUSE_ENCRYPTION_KEY: planted['encryption key'] as string,
    ROUSE_INITIAL_ADMIN_KEY: adminKey,
    ROUSE_LOG_LEVEL: 'trace',
    ROUSE_RETENTION_INTERVAL_MS: '200',
    ROUSE_COMPLETED_RETENTION_SECONDS: '1',
  },
  token: adminKey,
})
const answers: string[] = []
const api = async (method: string, path: string, body?: unknown, token = adminKey) => {
  const answer = await sendAs(token, method, `${url}${path}`, body)
  answers.push(JSON.stringify([answer.body, [...answer.headers]]))
  return answer
}
const push = (queue: string, more: object = {}) =>
  api('POST', '/api/v1/push', { items: [{ queue, payload: 1, ...more }] })
const popOne = async (queue: string, query = '') =>
  (await api('GET', `/api/v1/pop/queue/${queue}?wait=true&timeout=20000${query}`)).body.messages[0]
const rows = async (sql: string) => Number((await database.pool.query(sql)).rows[0].n)

test('messages are delivered, retried, scheduled, taken from SQL, and removed', {
  timeout,
}, async (t) => {
  await push('a')
  const ack = ackOf(await popOne('a'))
  t.equal((await api('POST', '/api/v1/ack', { ...ack, status: 'failed', error: 'x' })).status, 200)
  await popOne('a', '&autoAck=true')
  await push('a', { delayMs: 200 })
  t.ok(await popOne('a', '&autoAck=true'), 'promoted by a timer')
  await database.pool.query(`select rouse.enqueue('a', '1')`)
  const { receipt } = await popOne('a')
  await database.pool.query('select rouse.ack_in($1::text)', [receipt])
  await push('a', { transactionId: 'expires' })
  await popOne('a', '&leaseSeconds=1')
  t.match(await popOne('a', '&autoAck=true'), { transactionId: 'expires' }, 'after its lease')
  await api('PUT', '/api/v1/queues/sealed', { options: { encryptionEnabled: true } })
  await push('sealed', { payload: { planted: 'payload' } })
  t.match(await popOne('sealed', '&autoAck=true'), { data: { planted: 'payload' } })
  await push('a')
  const dead = ackOf(await popOne('a'))
  t.equal((await api('POST', '/api/v1/ack', { ...dead, status: 'dlq' })).status, 200)
  t.equal((await api('POST', '/api/v1/dead-letters/redrives', { queue: 'a' })).status, 202)
  t.ok(await popOne('a', '&autoAck=true'), 'redriven')
  await push('gone')
  t.equal((await api('POST', '/api/v1/queues/gone/purge', {})).status, 200)
  t.equal((await api('DELETE', '/api/v1/queues/gone')).status, 200)
  await database.pool.query(
    `insert into rouse.audit (at, node, principal, verb, target, outcome)
     values (now() - interval '200 days', 'n', 'old', 'manage', '*', 'done')`,
  )
  await eventually(
    async () => (await rows('select count(*) n from rouse.messages')) === 0,
    patience,
  )
  await eventually(
    async () => (await rows(`select count(*) n from rouse.audit where principal = 'old'`)) === 0,
    patience,
  )
  t.ok((await rows('select count(*) n from rouse.audit')) > 0, 'newer entries stay')
})

test('keys are made, used, rotated and revoked, and the audit log has it', {
  timeout,
}, async (t) => {
  const made = await makeKey(url, adminKey, { preset: 'viewer' })
  planted['a key'] = made.key.slice(19)
  await untilKnown(url, made.key, 403)
  const rotated = await sendAs(adminKey, 'POST', `${url}/api/v1/keys/${made.id}/rotate`, {})
  planted['a rotated key'] = rotated.body.key.slice(19)
  t.equal((await api('DELETE', `/api/v1/keys/${made.id}`)).status, 200)
  await untilKnown(url, made.key, 401)
  const { body } = await api('GET', '/api/v1/audit?limit=100')
  const events = body.entries.map(({ detail }: { detail: { event?: string } }) => detail.event)
  for (const event of ['key created', 'key rotated', 'key revoked']) {
    t.ok(events.includes(event), event)
  }
})

test('nothing was denied to the login of the node', async (t) => {
  const faults = log.filter((entry) => /permission denied|"42501"/.test(JSON.stringify(entry)))
  t.same(faults, [])
  t.same(
    log.filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  )
})

test('no secret is in an answer, in the log, or in the titles of the processes', {
  timeout,
}, async (t) => {
  const key = `rouse_${'a'.repeat(12)}_${planted['a key']}`
  const pushed = await push('a')
  const session = await api('POST', '/api/v1/session', { key: adminKey })
  t.equal(session.status, 200)
  t.equal((await api('POST', '/api/v1/session', { key })).status, 401)
  for (const [path, token] of [
    ['/stats', adminKey],
    ['/stats?scope=cluster', adminKey],
    ['/metrics', adminKey],
    ['/api/v1/nodes', adminKey],
    ['/api/v1/keys', adminKey],
    ['/api/v1/audit?limit=100', adminKey],
    ['/api/v1/queues', `${adminKey}x`],
    ['/api/v1/queues', key],
    ['/api/v1/queues?limit=x', adminKey],
    ['/api/v1/messages?queue=sealed', adminKey],
    ['/api/v1/events?once=true&wakes=true&groups=true', adminKey],
    ['/api/v1/events?once=true&lastEventId=1-1-x', adminKey],
    ['/api/v1/series', adminKey],
    ['/api/v1/queues/a/why', adminKey],
    [`/api/v1/messages/${pushed.body[0].id}`, adminKey],
    [`/api/v1/messages/${pushed.body[0].id}/why`, adminKey],
    ['/api/v1/dead-letters', adminKey],
    ['/api/v1/groups', adminKey],
    ['/api/v1/schedules', adminKey],
    ['/api/v1/session', adminKey],
    ['/api/v1/session', key],
    ['/dashboard/', adminKey],
    ['/ready', adminKey],
    ['/openapi.json', adminKey],
    ['/', adminKey],
  ] as const) {
    const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })
    answers.push(await answer.text(), JSON.stringify([...answer.headers]))
  }
  const bad: Answer = await api('POST', '/api/v1/push', { items: [{ queue: 1 }], token: adminKey })
  t.equal(bad.status, 400)
  const pids = [child.pid as number, ...childrenOf(child.pid as number)]
  t.equal(pids.length, 3)
  const places: Record<string, string> = {
    answers: answers.join('\n'),
    log: JSON.stringify(log),
    titles: pids.map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).join('\n'),
    statements: JSON.stringify(
      (await database.pool.query('select query, application_name from pg_stat_activity')).rows,
    ),
    tables: JSON.stringify((await database.pool.query('select * from rouse.api_keys')).rows),
    audit: JSON.stringify((await database.pool.query('select * from rouse.audit')).rows),
  }
  for (const [place, text] of Object.entries(places)) {
    t.ok(text.length > 50, `${place}: ${text.length} characters`)
    for (const [what, value] of Object.entries(planted)) {
      t.notOk(text.includes(value), `the ${what} is not in the ${place}`)
      if (!/^[0-9a-f]{64}$/.test(value)) continue
      t.notOk(text.includes(Buffer.from(value, 'hex').toString('base64')), 'nor in base64')
    }
  }
  for (const pid of childrenOf(child.pid as number)) {
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    t.ok(environment.includes('ROUSE_MIGRATE_URL='), 'workers do not get the login of the owner')
  }
})
