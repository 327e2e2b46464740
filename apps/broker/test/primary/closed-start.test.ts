// A node on an address that others can reach starts only with a key, or with ROUSE_INSECURE.
import { randomBytes } from 'node:crypto'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { newApiKey } from '../../src/auth/api-key.ts'
import { spawnBroker, startBroker } from '../support/broker.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'

const timeout = 60_000
const reachable = { ROUSE_HOST: '0.0.0.0' }
/** A node on all addresses reports one of them. */
const onLoopback = (url: string) => url.replace(/\/\/[^/]*:/, '//127.0.0.1:')

test('a node that others can reach does not start without a key, and names the command', {
  timeout,
}, async (t) => {
  const { url } = await testDatabase(t, { instrumented: false })
  const env = { ROUSE_DATABASE_URL: url, ROUSE_PORT: '0', ROUSE_GOSSIP_PORT: '0', ...reachable }
  const child = spawnBroker(env)
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => (output += String(chunk)))
  const code = await new Promise((resolve) => child.once('exit', resolve))
  t.equal(code, 1)
  t.match(output, /rouse keys create admin --preset admin/)
  t.match(output, /ROUSE_INSECURE=1/)
})

test('the initial key is stored by the first start only, and is needed from the first request on', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const first = newApiKey(randomBytes).key
  const env = { ...reachable, ROUSE_INITIAL_ADMIN_KEY: first }
  const broker = await startBroker(t, { database, env, token: first })
  const url = onLoopback(broker.url)
  t.equal((await sendAs(undefined, 'GET', `${url}/stats`)).status, 401)
  t.match((await sendAs(first, 'GET', `${url}/stats`)).body, { access: 'keys' })
  await broker.stop()
  const second = newApiKey(randomBytes).key
  const again = await startBroker(t, {
    database,
    env: { ...reachable, ROUSE_INITIAL_ADMIN_KEY: second },
    token: first,
  })
  t.equal((await sendAs(second, 'GET', `${onLoopback(again.url)}/stats`)).status, 401)
})

test('ROUSE_INSECURE serves requests without credentials, with a warning, and still checks keys', {
  timeout,
}, async (t) => {
  const broker = await startBroker(t, { env: { ...reachable, ROUSE_INSECURE: '1' } })
  const url = onLoopback(broker.url)
  t.ok(broker.log.some(({ level, msg }) => level === 'warn' && /ROUSE_INSECURE/.test(String(msg))))
  t.match((await sendAs(undefined, 'GET', `${url}/stats`)).body, { access: 'insecure' })
  const viewer = await makeKey(url, undefined, { preset: 'viewer' })
  await untilKnown(url, viewer.key, 403)
  t.equal((await sendAs(undefined, 'GET', `${url}/stats`)).status, 200)
  t.equal((await sendAs(`${viewer.key}x`, 'GET', `${url}/stats`)).status, 401)
})

test('an initial key of a wrong form is reported before the database is opened', {
  timeout,
}, async (t) => {
  const env = { ROUSE_DATABASE_URL: 'postgres://127.0.0.1:1/x', ROUSE_INITIAL_ADMIN_KEY: 'secret' }
  const child = spawnBroker(env)
  let output = ''
  child.stderr?.on('data', (chunk: Buffer) => (output += String(chunk)))
  t.equal(await new Promise((resolve) => child.once('exit', resolve)), 1)
  t.match(output, /ROUSE_INITIAL_ADMIN_KEY is not an API key/)
  t.notMatch(output, /secret"/)
})

test('closed nodes read the stats of each other, and announce revoked keys', {
  timeout,
}, async (t) => {
  const one = await startBroker(t)
  const admin = await makeKey(one.url, undefined, { preset: 'admin' })
  await untilKnown(one.url, admin.key, 200)
  const worker = await makeKey(one.url, admin.key, { preset: 'worker' })
  const env = { ROUSE_LOG_LEVEL: 'debug' }
  const two = await startBroker(t, { database: one.database, token: admin.key, env })
  for (const { url } of [one, two]) {
    await eventually(async () => {
      const { body } = await sendAs(admin.key, 'GET', `${url}/stats?scope=cluster`)
      return body.totals.nodes === 2 && body.unreachable.length === 0
    })
  }
  const poll = sendAs(worker.key, 'GET', `${two.url}/api/v1/pop/queue/q?wait=true&timeout=50000`)
  await eventually(async () => {
    const { body } = await sendAs(admin.key, 'GET', `${two.url}/stats`)
    return body.waiting.total === 1 && body.peers.some(({ hearsUs }: any) => hearsUs === true)
  })
  const before = two.log.length
  t.equal((await sendAs(admin.key, 'DELETE', `${one.url}/api/v1/keys/${worker.id}`)).status, 200)
  t.match(await poll, { status: 401, body: { code: 'unauthenticated' } })
  const told = two.log.slice(before).some(({ msg }) => msg === 'API keys changed on another node')
  t.ok(told, 'by gossip, before the next read of the keys')
})
