// Encrypted queues: no payload is stored as plain text, however it was pushed and however it ended.
import { randomBytes } from 'node:crypto'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { loadConfig } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/config-error.ts'
import {
  createPayloadCipher,
  readEncryptionKeys,
  sealedPrefix,
} from '../../src/encryption/payload-cipher.ts'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'

const secret = 'the text that must stay secret'
const newKey = () => randomBytes(32).toString('base64')

const place = { queue: 'q', id: '0190' }
const cipherOf = (...keys: string[]) => createPayloadCipher(readEncryptionKeys(keys.join(',')))

test('a payload decrypts to itself, and is encrypted differently each time', async (t) => {
  const cipher = cipherOf(newKey())
  for (const payload of ['null', '{"a":"ü\\u0000"}', '"enc1:"', `"${'x'.repeat(100_000)}"`]) {
    const [one, two] = [cipher.seal(place, payload), cipher.seal(place, payload)]
    t.ok(one.startsWith(sealedPrefix))
    t.not(one, two)
    t.equal(cipher.open(place, one), payload)
  }
  t.equal(cipher.open(place, '{"never":"sealed"}'), '{"never":"sealed"}')
})

test('a payload that was altered, truncated or moved to another message does not decrypt', async (t) => {
  const cipher = cipherOf(newKey())
  const sealed = cipher.seal(place, '1')
  t.throws(() => cipher.open({ ...place, queue: 'other' }, sealed), { code: 'internal' })
  t.throws(() => cipher.open({ ...place, id: 'other' }, sealed), { code: 'internal' })
  const at = sealed.length - 6
  const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`
  t.throws(() => cipher.open(place, changed), { code: 'internal' })
  t.throws(() => cipher.open(place, sealed.slice(0, -12)), { code: 'internal' })
})

test('the first of several keys encrypts, and all of them decrypt', async (t) => {
  const [old, fresh] = [newKey(), newKey()]
  const before = cipherOf(old).seal(place, '1')
  const both = cipherOf(fresh, old)
  t.equal(both.open(place, before), '1')
  t.equal(cipherOf(fresh).open(place, both.seal(place, '2')), '2')
  t.throws(() => cipherOf(fresh).open(place, before), { code: 'encryption_unavailable' })
})

test('a node does not start with an invalid key', async (t) => {
  const load = (env: Record<string, string>) =>
    loadConfig({ env: { ROUSE_DATABASE_URL: 'postgres://localhost/x', ...env }, args: [] })
  const hex = randomBytes(32).toString('hex')
  for (const key of [newKey(), hex, `${newKey()}, ${hex}`]) {
    t.equal(load({ ROUSE_ENCRYPTION_KEY: key }).config.encryptionKey, key)
  }
  const [same, short] = [newKey(), randomBytes(31).toString('base64')]
  const four = [1, 2, 3, 4].map(newKey).join(',')
  for (const key of ['x', short, hex.slice(1), `${same},${same}`, four, `${same},`]) {
    t.throws(() => load({ ROUSE_ENCRYPTION_KEY: key }), ConfigError, key)
  }
  t.throws(() => load({ ROUSE_DEFAULT_ENCRYPTION_ENABLED: 'true' }), ConfigError)
})

/** Returns the payloads of every table that has payloads. */
async function stored({ pool }: TestDatabase): Promise<string> {
  const { rows } = await pool.query(
    `select payload from rouse.messages union all select payload from rouse.scheduled
     union all select payload from rouse.dead_letters union all select payload from rouse.schedules`,
  )
  return rows.map(({ payload }) => payload).join('\n')
}

async function startNode(
  t: Test,
  database: TestDatabase,
  key?: string,
  more: Readonly<Record<string, string>> = {},
) {
  const env = key === undefined ? more : { ROUSE_ENCRYPTION_KEY: key, ...more }
  const node = await startBroker(t, { database, env: { ...env, ROUSE_WORKERS: '1' } })
  return apiOf(node.url)
}

test('payloads of an encrypted queue are never stored as plain text, and are delivered unchanged', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const api = await startNode(t, database, newKey())
  const queue = 'vault'
  await api.post('/configure', { queue, options: { encryptionEnabled: true, retryLimit: 0 } })
  await api.push({ queue, payload: { secret }, transactionId: 't1' })
  await api.push(
    { queue, payload: { secret }, delayMs: 60_000 },
    { queue: 'open', payload: 'clear' },
  )
  const [message] = (await api.pop(queue)).body.messages
  t.same(message.data, { secret })
  t.match((await api.get(`/messages?queue=${queue}`)).body.messages, [
    { data: { secret }, status: 'leased' },
    { data: { secret }, status: 'scheduled' },
  ])
  await api.ack(message, 'failed')
  t.match((await api.get(`/dlq?queue=${queue}`)).body.messages, [{ data: { secret } }])
  t.match((await api.get(`/messages/${message.partitionId}/t1`)).body, { data: { secret } })
  const operations = [{ type: 'push', items: [{ queue, payload: { secret } }] }]
  t.equal((await api.post('/transaction', { operations })).status, 200)
  t.same((await api.pop(queue)).body.messages[0].data, { secret })
  const text = await stored(database)
  t.equal(text.match(/^enc1:/gm)?.length, 4, 'two messages, a scheduled one and a dead letter')
  t.notMatch(text, /must stay secret/)
  t.match(text, /^"clear"$/m, 'other queues are not encrypted')
})

test('a node that does not know yet that a queue is encrypted stores no plain text', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const key = newKey()
  const [knows, learns] = [await startNode(t, database, key), await startNode(t, database, key)]
  const queue = 'vault'
  await learns.push({ queue, payload: 'before' })
  await knows.post('/configure', { queue, options: { encryptionEnabled: true } })
  t.equal((await learns.push({ queue, payload: secret })).status, 201)
  t.notMatch(await stored(database), /must stay secret/)
  const { body } = await knows.pop(queue, '?batch=2')
  t.match(
    body.messages,
    [{ data: 'before' }, { data: secret }],
    'earlier plain messages are still delivered',
  )
})

test('a node without the key refuses pushes and releases messages that it cannot decrypt', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const [keyless, keyed] = [await startNode(t, database), await startNode(t, database, newKey())]
  const queue = 'vault'
  await keyed.post('/configure', { queue, options: { encryptionEnabled: true } })
  const refused = { status: 503, body: { code: 'encryption_unavailable' } }
  t.match(await keyless.push({ queue, payload: secret }), refused)
  t.match(await keyless.push({ queue, payload: secret, delayMs: 1_000 }), refused)
  const operations = [{ type: 'push', items: [{ queue, payload: secret }] }]
  t.match(await keyless.post('/transaction', { operations }), refused)
  t.equal(await stored(database), '')
  await t.rejects(database.pool.query(`select rouse.enqueue('vault', '"in the clear"')`), {
    code: 'RS409',
  })
  const together = await Promise.all([
    keyless.push({ queue, payload: secret }),
    keyless.push({ queue: 'open', payload: 1 }),
  ])
  t.same(
    together.map(({ status }) => status),
    [503, 201],
    'another push of the same batch succeeds',
  )

  await keyed.push({ queue, payload: secret })
  t.match(await keyless.pop(queue), refused)
  const { body } = await keyed.pop(queue, '?wait=true&timeout=10000')
  t.match(body.messages, [{ data: secret, attempt: 1 }], 'released at once, uncharged')
  t.match((await keyless.get(`/messages?queue=${queue}`)).body.messages, [
    { data: null, undecrypted: true },
  ])
})

test('a queue that is encrypted by default is encrypted from its first message on', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const api = await startNode(t, database, newKey(), { ROUSE_DEFAULT_ENCRYPTION_ENABLED: 'true' })
  const items = ['one', 'two', 'one'].map((queue) => ({ queue, payload: secret }))
  t.equal((await api.push(...items)).status, 201, 'several new queues in one push')
  const pushes = [1, 2, 3, 4].map(() => api.push({ queue: 'three', payload: secret }))
  t.same(
    (await Promise.all(pushes)).map(({ status }) => status),
    [201, 201, 201, 201],
  )
  t.notMatch(await stored(database), /must stay secret/)
  t.match((await api.pop('two')).body.messages, [{ data: secret }])
})

test('a schedule of an encrypted queue is stored encrypted, and so are its messages', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const key = newKey()
  const api = await startNode(t, database, key)
  const queue = 'vault'
  const schedule = { name: 's', queue, cron: '* * * * * *', payload: { secret } }
  await api.post('/configure', { queue, options: { encryptionEnabled: true } })
  t.match(await api.post('/schedules', schedule), { status: 200, body: { payload: { secret } } })
  const [first, second] = [await popOne(api, queue), await popOne(api, queue)]
  t.match(first, { data: { secret }, headers: { schedule: 's' } })
  t.match(second, { data: { secret } }, 'and again after it was encrypted again')
  const { schedules } = (await api.get('/schedules')).body
  t.match(schedules, [{ payload: { secret } }])
  t.notMatch(await stored(database), /must stay secret/)
  t.ok(
    ((await stored(database)).match(/^enc1:/gm)?.length ?? 0) >= 3,
    'two messages and a schedule',
  )

  await t.test(
    'a node without the key refuses such a schedule, and lists it without its payload',
    async (t) => {
      const keyless = await startNode(t, database)
      const refused = { status: 503, body: { code: 'encryption_unavailable' } }
      t.match(await keyless.post('/schedules', schedule), refused)
      t.match((await keyless.get('/schedules')).body.schedules, [
        { name: 's', payload: null, undecrypted: true },
      ])
    },
  )
})

test('a schedule that is older than the encryption of its queue is encrypted when it fires', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const api = await startNode(t, database, newKey())
  const queue = 'vault'
  await api.post('/schedules', { name: 's', queue, cron: '* * * * * *', payload: secret })
  t.match(await popOne(api, queue), { data: secret })
  t.match(await stored(database), /must stay secret/)
  await api.post('/configure', { queue, options: { encryptionEnabled: true } })
  const { pool } = database
  await eventually(
    async () => (await pool.query(`select from rouse.schedules where payload ~ '^enc1:'`)).rowCount,
    { timeoutMs: 20_000 },
  )
  await eventually(
    async () => {
      const { id } = await popOne(api, queue)
      const sql = `select from rouse.messages where id = $1 and payload ~ '^enc1:'`
      return (await pool.query(sql, [id])).rowCount
    },
    { timeoutMs: 20_000 },
  )
  t.match(await popOne(api, queue), { data: secret })
})

test('a schedule of a plain queue stays plain when encryption becomes the default', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const key = newKey()
  const before = await startNode(t, database, key)
  await before.post('/configure', { queue: 'open' })
  const api = await startNode(t, database, key, { ROUSE_DEFAULT_ENCRYPTION_ENABLED: 'true' })
  for (const queue of ['open', 'later']) {
    await api.post('/schedules', { name: queue, queue, cron: '@yearly', payload: queue })
  }
  const { rows } = await database.pool.query(
    `select name, payload ~ '^enc1:' as sealed from rouse.schedules order by name`,
  )
  t.same(rows, [
    { name: 'later', sealed: true },
    { name: 'open', sealed: false },
  ])
})

test('the defaults in the database decide whether the schedule of a queue that does not exist yet is encrypted', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const key = newKey()
  const api = await startNode(t, database, key)
  const schedule = { cron: '* * * * * *', payload: { secret } }
  await api.post('/schedules', { ...schedule, name: 'old', queue: 'one', paused: true })
  await startNode(t, database, key, { ROUSE_DEFAULT_ENCRYPTION_ENABLED: 'true' })
  await database.pool.query('update rouse.schedules set paused = false, next_at = rouse.now()')
  t.match(await popOne(api, 'one'), { data: { secret } }, 'stored before the default changed')
  await api.post('/schedules', { ...schedule, name: 'new', queue: 'two' })
  t.match(await popOne(api, 'two'), { data: { secret } }, 'by a node with other defaults')
  t.notMatch(await stored(database), /must stay secret/)
})

async function popOne(api: ReturnType<typeof apiOf>, queue: string) {
  const { body } = await api.pop(queue, '?wait=true&timeout=20000&autoAck=true')
  return body.messages[0]
}
