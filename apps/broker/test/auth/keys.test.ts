// API keys on a running node: creation closes it, keys work at once, and end when they are revoked.
import { randomBytes } from 'node:crypto'
import { revokeKey } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { newApiKey } from '../../src/auth/api-key.ts'
import { startBroker } from '../support/broker.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'

const timeout = 60_000

test('the first key closes a node on loopback, and revoking the last key does not open it', {
  timeout,
}, async (t) => {
  const { url } = await startBroker(t)
  t.match((await sendAs(undefined, 'GET', `${url}/stats`)).body, { access: 'loopback' })
  const item = { items: [{ queue: 'q', payload: 1 }] }
  t.equal((await sendAs(undefined, 'POST', `${url}/api/v1/push`, item)).status, 201)
  const stranger = `rouse_${'a'.repeat(12)}_${'b'.repeat(43)}`
  t.equal((await sendAs(stranger, 'POST', `${url}/api/v1/push`, item)).status, 201, 'no keys yet')
  const admin = await makeKey(url, undefined, { name: 'root', preset: 'admin' })
  await untilKnown(url, admin.key, 200)
  t.equal((await sendAs(undefined, 'POST', `${url}/api/v1/push`, item)).status, 401)
  t.equal((await sendAs(stranger, 'POST', `${url}/api/v1/push`, item)).status, 401)
  t.equal((await sendAs(admin.key, 'POST', `${url}/api/v1/push`, item)).status, 201)
  t.match((await sendAs(admin.key, 'GET', `${url}/stats`)).body, { access: 'keys' })
  t.equal((await sendAs(admin.key, 'DELETE', `${url}/api/v1/keys/${admin.id}`)).status, 200)
  await untilKnown(url, admin.key, 401)
  t.equal((await sendAs(undefined, 'GET', `${url}/stats`)).status, 401)
  for (const path of ['/live', '/ready', '/']) t.equal((await fetch(url + path)).status, 200, path)
})

test('keys are listed without secrets, rotated with a grace period, and refused if they are invalid', {
  timeout,
}, async (t) => {
  const { url, database, log } = await startBroker(t, { env: { ROUSE_LOG_LEVEL: 'trace' } })
  const keysUrl = `${url}/api/v1/keys`
  const admin = await makeKey(url, undefined, { name: 'root', preset: 'admin' })
  await untilKnown(url, admin.key, 200)
  const old = await makeKey(url, admin.key, { name: 'shop', preset: 'producer', queue: 'orders' })
  const rotated = await sendAs(admin.key, 'POST', `${keysUrl}/${old.id}/rotate`, {
    graceSeconds: 60,
  })
  t.match(rotated, {
    status: 201,
    body: { name: 'shop', grants: ['push:orders'], createdBy: 'root' },
  })
  const fresh = rotated.body.key as string
  const item = { items: [{ queue: 'orders', payload: 1 }] }
  for (const token of [old.key, fresh]) {
    await untilKnown(url, token, 403)
    t.equal((await sendAs(token, 'POST', `${url}/api/v1/push`, item)).status, 201)
  }
  const now = await sendAs(admin.key, 'POST', `${keysUrl}/${old.id}/rotate`, { graceSeconds: 0 })
  t.equal(now.status, 201)
  await untilKnown(url, old.key, 401)
  t.equal((await sendAs(admin.key, 'POST', `${keysUrl}/${old.id}/rotate`)).status, 404)
  t.equal((await sendAs(admin.key, 'DELETE', `${keysUrl}/nothing`)).status, 404)
  const listed = await sendAs(admin.key, 'GET', keysUrl)
  t.equal(listed.body.keys.length, 4)
  t.match(
    listed.body.keys.find(({ id }: { id: string }) => id === old.id),
    { revokedAt: /^20/ },
  )
  for (const [body, field] of [
    [{ preset: 'admin', queue: 'x' }, 'queue'],
    [{ queue: 'x' }, 'queue'],
    [{}, 'preset'],
    [{ grants: ['push:x', 'fly:x'] }, 'grants[1]'],
    [{ preset: 'viewer', expiresAt: 'soon' }, 'expiresAt'],
    [{ preset: 'viewer', queue: '' }, 'queue'],
  ] as const) {
    const refused = await sendAs(admin.key, 'POST', keysUrl, { name: 'x', ...body })
    t.match(refused, { status: 400, body: { errors: [{ field }] } }, JSON.stringify(body))
  }
  const { rows } = await database.pool.query('select * from rouse.api_keys')
  const planted = [admin.key, old.key, fresh].map((key) => key.slice(19))
  for (const [where, text] of [
    ['list', JSON.stringify(listed.body)],
    ['log', JSON.stringify(log)],
    ['table', JSON.stringify(rows)],
    ['stats', JSON.stringify((await sendAs(admin.key, 'GET', `${url}/stats`)).body)],
    ['error', JSON.stringify((await sendAs(`${old.key}x`, 'GET', keysUrl)).body)],
  ] as const) {
    for (const secret of planted) t.notOk(text.includes(secret), `no secret in the ${where}`)
  }
})

test('a waiting pop ends within ten seconds when its key is revoked without a notice, and takes nothing', {
  timeout,
}, async (t) => {
  const { url, database } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const worker = await makeKey(url, admin.key, { preset: 'worker', queue: 'q' })
  await untilKnown(url, worker.key, 403)
  const poll = `${url}/api/v1/pop/queue/q?wait=true&timeout=30000`
  const ended = sendAs(worker.key, 'GET', poll)
  const kept = sendAs(admin.key, 'GET', `${poll}&consumerGroup=other`)
  await eventually(async () => {
    const { body } = await sendAs(admin.key, 'GET', `${url}/stats`)
    return body.waiting.total === 2
  })
  const revokedAtMs = performance.now()
  await revokeKey(database.pool, worker.id)
  t.match(await ended, { status: 401, body: { code: 'unauthenticated' } })
  t.ok(performance.now() - revokedAtMs < 10_000)
  await sendAs(admin.key, 'POST', `${url}/api/v1/push`, { items: [{ queue: 'q', payload: 1 }] })
  t.equal((await kept).body.messages.length, 1, 'the pop of another key')
  t.equal((await sendAs(admin.key, 'GET', poll)).body.messages.length, 1)
  await eventually(async () => {
    const { body } = await sendAs(admin.key, 'GET', `${url}/stats`)
    return body.waiting.total === 0
  })
})

test('a key that was used is listed with the day', { timeout }, async (t) => {
  const broker = await startBroker(t)
  const admin = await makeKey(broker.url, undefined, { preset: 'admin' })
  await untilKnown(broker.url, admin.key, 200)
  await eventually(async () => {
    const { body } = await sendAs(admin.key, 'GET', `${broker.url}/api/v1/keys`)
    return /^\d{4}-\d{2}-\d{2}$/.test(body.keys[0].lastUsedDay)
  })
})

test('lists show a key only its queues, and cursors name no other', { timeout }, async (t) => {
  const { url } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  await untilKnown(url, admin.key, 200)
  for (const queue of ['a', 'b-1', 'b-2', 'c', 'd']) {
    await sendAs(admin.key, 'PUT', `${url}/api/v1/queues/${queue}`, {})
  }
  const grants = ['observe:b-*', 'observe:d']
  const viewer = await makeKey(url, admin.key, { grants })
  await untilKnown(url, viewer.key, 403)
  for (const path of ['/api/v1/queues', '/api/v1/resources/queues']) {
    const all = await sendAs(viewer.key, 'GET', `${url}${path}`)
    t.same(
      all.body.queues.map(({ queue }: { queue: string }) => queue),
      ['b-1', 'b-2', 'd'],
      path,
    )
    const names: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = `?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`
      const { body } = await sendAs(viewer.key, 'GET', `${url}${path}${page}`)
      names.push(...body.queues.map(({ queue }: { queue: string }) => queue))
      cursor = body.cursor
      if (cursor !== null) t.match(Buffer.from(cursor, 'base64url').toString(), /^(b-|d$)/)
    }
    t.same(names, ['b-1', 'b-2', 'd'])
  }
})

test('a key of one consumer group pops for that group only', { timeout }, async (t) => {
  const { url } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const billing = await makeKey(url, admin.key, { grants: ['pop:orders*@billing'] })
  await untilKnown(url, billing.key, 403)
  const at = (queue: string) => `${url}/api/v1/pop/queue/${queue}`
  for (const [method, query, body, status] of [
    ['GET', '?consumerGroup=billing', undefined, 204],
    ['GET', '?consumerGroup=other', undefined, 403],
    ['GET', '', undefined, 403],
    ['GET', '?consumerGroup=billing&consumerGroup=other', undefined, 403],
    ['POST', '', { consumerGroup: 'billing' }, 204],
    ['POST', '', { consumerGroup: 'other' }, 403],
    ['POST', '?consumerGroup=billing', {}, 403],
    ['POST', '', {}, 403],
    ['POST', '', undefined, 403],
  ] as const) {
    const answer = await sendAs(billing.key, method, `${at('orders-eu')}${query}`, body)
    t.equal(answer.status, status, `${method} ${query} ${JSON.stringify(body)}`)
  }
  const other = await sendAs(billing.key, 'GET', `${at('mail')}?consumerGroup=billing`)
  t.match(other, { status: 403, body: { grant: 'pop:mail' } })
})

test('a key with limits gets 429 with Retry-After, over all workers of the node', {
  timeout,
}, async (t) => {
  const { url } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const limits = { requestsPerSecond: 20 }
  const limited = await makeKey(url, admin.key, { preset: 'worker', limits })
  await untilKnown(url, admin.key, 200)
  const until = performance.now() + 4_000
  const counts = new Map<number, number>()
  const push = { items: [{ queue: 'q', payload: 1 }] }
  while (performance.now() < until) {
    const answer = await sendAs(limited.key, 'POST', `${url}/api/v1/push`, push)
    counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1)
    if (answer.status !== 429) continue
    t.match(answer.body, { code: 'rate_limited', retryable: true })
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
  const done = counts.get(201) ?? 0
  t.ok(done >= 60 && done <= 20 * 4 + 40, `${done} in four seconds, in two workers`)
  t.ok((counts.get(429) ?? 0) > 0)
})

test('a key has no more waiting pops than its limit, over all workers of the node', {
  timeout,
}, async (t) => {
  const { url } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const limited = await makeKey(url, admin.key, { preset: 'worker', limits: { waitingPops: 1 } })
  await untilKnown(url, limited.key, 403)
  const pop = (waitMs: number) =>
    sendAs(limited.key, 'GET', `${url}/api/v1/pop/queue/q?wait=true&timeout=${waitMs}`)
  const first = pop(30_000)
  await eventually(async () => {
    return (await sendAs(admin.key, 'GET', `${url}/stats`)).body.waiting.total === 1
  })
  for (let i = 0; i < 4; i += 1) await eventually(async () => (await pop(50)).status === 429)
  await sendAs(admin.key, 'POST', `${url}/api/v1/push`, { items: [{ queue: 'q', payload: 1 }] })
  t.equal((await first).status, 200)
  await eventually(async () => (await pop(50)).status === 204)
})

test('a key that manages a queue cannot move its dead letters to a queue that it may not push to', {
  timeout,
}, async (t) => {
  const { url } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const grants = ['manage:a', 'push:a', 'push:mine-*']
  const { key } = await makeKey(url, admin.key, { grants })
  await untilKnown(url, key, 403)
  const queueUrl = `${url}/api/v1/queues/a`
  for (const [deadLetterTo, status] of [
    ['other', 403],
    [['other'], 403],
    ['mine-dead', 200],
    [null, 200],
  ] as const) {
    const options = { deadLetterTo }
    for (const method of ['PUT', 'PATCH']) {
      const answer = await sendAs(key, method, queueUrl, { options })
      t.equal(answer.status, status, `${method} ${String(deadLetterTo)}`)
      if (deadLetterTo === 'other') t.match(answer.body, { grant: 'push:other' })
    }
    const configure = { queue: 'a', options }
    t.equal((await sendAs(key, 'POST', `${url}/api/v1/configure`, configure)).status, status)
  }
})

test('neither a valid nor a refused credential costs a query', { timeout }, async (t) => {
  const { url, database } = await startBroker(t)
  const admin = await makeKey(url, undefined, { preset: 'admin' })
  const viewer = await makeKey(url, admin.key, { preset: 'viewer' })
  await untilKnown(url, viewer.key, 403)
  const signedIn = await sendAs(undefined, 'POST', `${url}/api/v1/session`, { key: viewer.key })
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';')
  // A session reports its transactions when it is idle for a while, and at its end.
  const transactions = async () => {
    const { rows } = await database.pool.query<{ n: string }>(
      `select xact_commit + xact_rollback as n from pg_stat_database where datname = current_database()`,
    )
    return Number(rows[0]?.n)
  }
  const quiet = async () => {
    let last = -1
    await eventually(
      async () => {
        const now = await transactions()
        const grew = now - last
        last = now
        return grew < 30
      },
      { timeoutMs: 40_000, intervalMs: 2_000 },
    )
    return last
  }
  const before = await quiet()
  const credentials: Record<string, string>[] = [
    { authorization: `Bearer ${viewer.key}` },
    { cookie },
    { authorization: `Bearer ${viewer.key.slice(0, -1)}_` },
    { authorization: `Bearer ${newApiKey(randomBytes).key}` },
    {},
  ]
  const statuses = new Set<number>()
  const requests = 3_000
  for (let i = 0; i < requests; i += 50) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        fetch(`${url}/api/v1/nodes`, { headers: credentials[n % credentials.length] ?? {} }),
      ),
    )
    for (const answer of answers) statuses.add(answer.status)
    await Promise.all(answers.map((answer) => answer.arrayBuffer()))
  }
  t.same(statuses, new Set([200, 401]))
  const used = (await quiet()) - before
  t.ok(used < requests / 10, `${used} transactions with ${requests} requests`)
})
