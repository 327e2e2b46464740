// API keys while the database or gossip is unavailable.
import { randomBytes } from 'node:crypto'
import { createKey } from '@rouse/storage'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { apiKeyHash, newApiKey } from '../../src/auth/api-key.ts'
import { startBroker } from '../support/broker.ts'
import { cuttableProxy } from '../support/cuttable-proxy.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'
import { childrenOf } from '../support/process-tree.ts'

const timeout = 120_000
const patience = { timeoutMs: 30_000 }

test('without the database, known keys stay valid and unknown ones get 503, also after a worker has died', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const proxy = await cuttableProxy(t, database.url)
  const env = { ROUSE_DATABASE_URL: proxy.url }
  const { url, child } = await startBroker(t, { database, env })
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  await untilKnown(url, admin.key, 200)
  const { id, key } = newApiKey(randomBytes)
  const stats = (token: string | undefined) => sendAs(token, 'GET', `${url}/stats`)
  proxy.cut()
  const late = { id, name: 'late', hash: apiKeyHash(key), grants: ['observe:*'], limits: {} }
  await createKey(database.pool, { ...late, createdBy: 'test', expiresAt: null })
  await untilStatus(url, key, 503)
  t.match((await stats(key)).body, { code: 'database_unavailable' })
  t.match(await stats(admin.key), { status: 200, body: { access: 'keys' } })
  t.equal((await stats(undefined)).status, 401)
  t.equal((await stats('rouse_mistyped')).status, 401)
  const [worker] = childrenOf(child.pid as number) as [number]
  process.kill(worker, 'SIGKILL')
  await eventually(async () => {
    const pids = childrenOf(child.pid as number)
    return pids.length === 2 && !pids.includes(worker)
  }, patience)
  await untilStatus(url, admin.key, 200)
  await untilListening(url, admin.key)
  for (let i = 0; i < 20; i += 1) {
    t.equal(await statusOf(url, key), 503, 'the new worker knows that its keys are old')
  }
  proxy.restore()
  await untilStatus(url, key, 200)
})

/** On a new connection, so that it goes to either worker. */
async function statusOf(url: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  const answer = await fetch(`${url}/stats`, { headers })
  await answer.arrayBuffer()
  return answer.status
}

/** Resolves when both workers give this status. */
async function untilStatus(url: string, token: string, status: number): Promise<void> {
  await eventually(async () => {
    for (let i = 0; i < 8; i += 1) if ((await statusOf(url, token)) !== status) return false
    return true
  }, patience)
}

async function untilListening(url: string, token: string): Promise<void> {
  await eventually(async () => {
    return (await sendAs(token, 'GET', `${url}/stats`)).body.local_sidecars === 2
  }, patience)
}

test('a key that is revoked on one node ends its polls on another one within ten seconds, without gossip', {
  timeout,
}, async (t) => {
  // Nodes with different secrets drop all datagrams of each other.
  const one = await startBroker(t, {
    env: { ROUSE_GOSSIP_SECRET: randomBytes(32).toString('hex') },
  })
  const admin = await makeKey(one.url, undefined, { preset: 'admin' })
  const worker = await makeKey(one.url, admin.key, { preset: 'worker' })
  const two = await startBroker(t, {
    database: one.database,
    env: { ROUSE_GOSSIP_SECRET: randomBytes(32).toString('hex') },
    token: admin.key,
  })
  const poll = sendAs(worker.key, 'GET', `${two.url}/api/v1/pop/queue/q?wait=true&timeout=60000`)
  const statsOf = async (url: string) => (await sendAs(admin.key, 'GET', `${url}/stats`)).body
  await eventually(async () => (await statsOf(two.url)).waiting.total === 1)
  t.notMatch((await statsOf(two.url)).peers, [{ hearsUs: true }])
  const revokedAtMs = performance.now()
  await sendAs(admin.key, 'DELETE', `${one.url}/api/v1/keys/${worker.id}`)
  t.match(await poll, { status: 401, body: { code: 'unauthenticated' } })
  t.ok(performance.now() - revokedAtMs < 10_000)
})

test('a poll ends when its key expires', { timeout }, async (t) => {
  const { url } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const expiresAtMs = Date.now() + 3_000
  const expiresAt = new Date(expiresAtMs).toISOString()
  const short = await makeKey(url, admin.key, { preset: 'worker', expiresAt })
  await untilKnown(url, short.key, 403)
  const poll = `${url}/api/v1/pop/queue/q?wait=true&timeout=60000`
  t.equal((await sendAs(short.key, 'GET', poll)).status, 401)
  t.ok(Date.now() - expiresAtMs < 10_000)
  t.ok(Date.now() >= expiresAtMs)
})
