// The audit log: every action and a sample of refusals, with who, what and when.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { AuditLog } from '../../src/auth/audit-log.ts'
import { createLogger } from '../../src/log.ts'
import { startBroker } from '../support/broker.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'

const timeout = 60_000

test('an action is recorded when its response arrives, with who did what, and reads are not', {
  timeout,
}, async (t) => {
  const { url, log } = await startBroker(t)
  const admin = await makeKey(url, undefined, { name: 'root', preset: 'admin' })
  await untilKnown(url, admin.key, 200)
  const audit = async (query = '') =>
    (await sendAs(admin.key, 'GET', `${url}/api/v1/audit${query}`)).body
  const before = (await audit()).entries
  t.match(before, [
    {
      principal: 'anonymous',
      keyId: null,
      verb: 'admin',
      target: admin.id,
      outcome: 'done',
      detail: { event: 'key created', name: 'root' },
    },
  ])
  const created = await sendAs(admin.key, 'PUT', `${url}/api/v1/queues/orders`, {})
  const [entry] = (await audit('?target=orders')).entries
  t.match(entry, {
    node: String,
    principal: 'root',
    keyId: admin.id,
    address: '127.0.0.1',
    verb: 'manage',
    target: 'orders',
    outcome: 'done',
    requestId: created.headers.get('x-request-id'),
    detail: { route: 'PUT /api/v1/queues/:queue', status: 200 },
  })
  await sendAs(admin.key, 'GET', `${url}/api/v1/queues/orders`)
  await sendAs(admin.key, 'POST', `${url}/api/v1/push`, {
    items: [{ queue: 'orders', payload: 1 }],
  })
  const failed = await sendAs(admin.key, 'POST', `${url}/api/v1/queues/none/pause`)
  t.equal(failed.status, 404)
  t.match((await audit('?outcome=failed')).entries, [{ target: 'none', detail: { status: 404 } }])
  t.equal((await audit()).entries.length, before.length + 2, 'neither reads nor pushes')
  const first = await audit('?limit=1')
  t.match(await audit(`?limit=1&cursor=${first.cursor}`), { entries: [{ target: 'orders' }] })
  t.equal((await sendAs(admin.key, 'GET', `${url}/api/v1/audit?cursor=x`)).status, 400)
  await eventually(() =>
    log.some(({ msg, audit: line }) => {
      return msg === 'audit' && (line as { target: string }).target === 'orders'
    }),
  )
})

test('refused requests are recorded with the key that was shown, and only a sample of many', {
  timeout,
}, async (t) => {
  const { url, database } = await startBroker(t, { env: { ROUSE_WORKERS: '1' } })
  const admin = await makeKey(url, undefined, { name: 'root', preset: 'admin' })
  const viewer = await makeKey(url, admin.key, { name: 'eye', preset: 'viewer' })
  await sendAs(viewer.key, 'DELETE', `${url}/api/v1/queues/orders`)
  const gone = await makeKey(url, admin.key, { preset: 'viewer' })
  await sendAs(admin.key, 'DELETE', `${url}/api/v1/keys/${gone.id}`)
  await sendAs(gone.key, 'GET', `${url}/stats`)
  for (let i = 0; i < 200; i += 1) await sendAs(undefined, 'GET', `${url}/stats`)
  const refused = async () =>
    (await sendAs(admin.key, 'GET', `${url}/api/v1/audit?outcome=refused`)).body.entries
  const entries = await eventually(async () => {
    const all = await refused()
    return all.length >= 10 && all
  })
  t.match(entries.slice(-2).reverse(), [
    { principal: 'eye', keyId: viewer.id, verb: 'manage', target: 'orders' },
    { principal: 'unknown', keyId: null, verb: 'observe', detail: { shownKey: gone.id } },
  ])
  t.ok(entries.length < 50, `${entries.length} of 202`)
  const { rows } = await database.pool.query('select * from rouse.audit')
  for (const { key } of [admin, viewer, gone]) {
    t.notOk(JSON.stringify(rows).includes(key.slice(19)), 'no secrets')
  }
})

test('the sample says how many refusals were left out, and a full or failing log blocks no request', async (t) => {
  const written: unknown[] = []
  const time = { ms: 0 }
  const clock = { nowMs: () => time.ms, wallMs: () => time.ms }
  const log = createLogger({ level: 'silent', node: 'n', process: 'p' })
  const audit = new AuditLog({
    write: async (entries) => {
      written.push(...entries)
      if (written.length > 11) throw new Error('no database')
    },
    log,
    clock,
  })
  const entry = { principal: 'x', verb: 'push', target: 'q', outcome: 'refused' } as const
  for (let i = 0; i < 30; i += 1) audit.recordRefusal(() => entry)
  time.ms = 1_000
  audit.recordRefusal(() => entry)
  await audit.record(entry)
  t.equal(written.length, 12)
  t.match(written[10], { detail: { leftOut: 20 } })
  await audit.record(entry)
})
