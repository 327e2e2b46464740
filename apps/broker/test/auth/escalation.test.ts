// What holders of weak keys try, to get more than their grants: the worker of one consumer group, a manager who may not
// read, a viewer of one queue, and those who want to spoil what others use.
import { connect } from 'node:net'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { ackOf, send } from '../support/http.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'
import { sharedBroker } from '../support/shared-broker.ts'

const timeout = 120_000
const broker = await sharedBroker()
const { url, log } = broker
const { hostname, port, host } = new URL(url)
const admin = await makeKey(url, undefined, { preset: 'admin' })
const worker = await makeKey(url, admin.key, { preset: 'worker', queue: 'others' })
const billing = await makeKey(url, admin.key, { grants: ['pop:orders@billing'] })
const manager = await makeKey(url, admin.key, { grants: ['manage:orders'] })
const operator = await makeKey(url, admin.key, { preset: 'operator', queue: 'others' })
const viewer = await makeKey(url, admin.key, { preset: 'viewer', queue: 'others' })
await untilKnown(url, viewer.key, 403)
const as = (key: string | undefined, method: string, path: string, body?: unknown) =>
  sendAs(key, method, `${url}/api/v1${path}`, body)

/** Every worker of the node knows the queue of the message afterwards. */
async function leaseFrom(queue: string) {
  const items = [{ queue, partition: 'p', payload: 1 }]
  const push = () =>
    fetch(`${url}/api/v1/push`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${admin.key}`,
        'content-type': 'application/json',
        connection: 'close',
      },
      body: JSON.stringify({ items }),
    })
  await Promise.all(Array.from({ length: 8 }, push))
  return (await as(admin.key, 'GET', `/pop/queue/${queue}`)).body.messages[0]
}

function raw(text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(text, 'latin1'))
    socket.setTimeout(3_000, () => socket.destroy())
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

test('a worker of one consumer group reaches no other group', { timeout }, async (t) => {
  await as(admin.key, 'POST', '/push', { items: [{ queue: 'orders', payload: 1 }] })
  const path = '/pop/queue/orders'
  for (const query of [
    '',
    '?consumerGroup=',
    '?consumerGroup=default',
    '?consumerGroup=other',
    '?consumerGroup=billing&consumerGroup=other',
    '?consumerGroup=Billing',
    '?consumerGroup=billing%00',
    '?consumerGroup=billing%20',
    '?consumerGroup[]=billing',
    '?ConsumerGroup=billing',
  ]) {
    t.equal((await as(billing.key, 'GET', `${path}${query}`)).status, 403, query)
  }
  for (const body of [
    '{}',
    '{"consumerGroup":null}',
    '{"consumerGroup":""}',
    '{"consumerGroup":["billing"]}',
    '{"consumerGroup":"billing","consumerGroup":"other"}',
    '{"__proto__":{"consumerGroup":"billing"}}',
    '{"consumerGroup":"other","__proto__":{"consumerGroup":"billing"}}',
  ]) {
    const { status } = await fetch(`${url}/api/v1${path}?consumerGroup=billing`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${billing.key}`, 'content-type': 'application/json' },
    })
    t.equal(status, 403, body)
  }
  const own = await as(billing.key, 'GET', `${path}?consumerGroup=billing`)
  t.match(own, { status: 200, body: { consumerGroup: 'billing' } })
})

test('a receipt of another queue reports no progress, ends no lease, and fences nothing', {
  timeout,
}, async (t) => {
  const { id, receipt } = await leaseFrom('leaked')
  for (const [path, body] of [
    [`/messages/${id}/progress`, { receipt, progress: 'forged' }],
    ['/ack/batch', { leaseId: receipt }],
    [
      '/transaction',
      {
        operations: [{ type: 'push', items: [{ queue: 'others', payload: 1 }] }],
        requiredLeases: [receipt],
      },
    ],
  ] as const) {
    const answer = await as(worker.key, 'POST', path, body)
    t.match(answer, { status: 403, body: { grant: 'pop' } }, path)
  }
  const { body } = await as(admin.key, 'GET', `/messages/${id}`)
  t.match(body, { state: 'leased', progress: null }, 'nothing was done')
})

test('who may manage but not peek cannot find error texts by filtering', { timeout }, async (t) => {
  const failed = await leaseFrom('orders')
  await as(admin.key, 'POST', '/ack', { ...ackOf(failed), status: 'dlq', error: 'secret text' })
  const where = { errorMessage: 'secret text' }
  for (const path of ['/dead-letters/redrives', '/dlq/redrive']) {
    for (const dryRun of [true, false]) {
      const answer = await as(manager.key, 'POST', path, { queue: 'orders', dryRun, where })
      t.match(answer, { status: 403, body: { grant: 'peek:orders' } }, path)
    }
    const all = await as(manager.key, 'POST', path, { queue: 'orders', dryRun: true })
    t.match(all, { status: 200, body: { total: 1 } }, 'without the filter it may')
  }
  for (const path of ['/dead-letters', '/dlq']) {
    const query = `${path}?queue=orders&errorMessage=secret%20text`
    t.equal((await as(manager.key, 'DELETE', query)).status, 403, query)
    t.equal((await as(manager.key, 'GET', query)).status, 403, query)
  }
})

test('a manager of one queue changes nothing in another by options, schedules or names', {
  timeout,
}, async (t) => {
  const options = { deadLetterTo: 'orders' }
  for (const [method, path, body] of [
    ['PUT', '/queues/others', { options }],
    ['PATCH', '/queues/others', { options }],
    ['POST', '/configure', { queue: 'others', options }],
    ['POST', '/configure', { queue: 'others', dryRun: true, options }],
    ['POST', '/configure', { queue: 'others', options: { deadLetterTo: ['orders'] } }],
    ['PUT', '/schedules/mine', { queue: 'orders', cron: '@yearly', payload: 1 }],
    ['POST', '/schedules', { name: 'mine', queue: 'orders', cron: '@yearly', payload: 1 }],
    ['DELETE', '/queues/orders', undefined],
    ['DELETE', '/queues/others%2f..%2forders', undefined],
    ['POST', '/queues/orders/purge', undefined],
    ['DELETE', '/groups/default', undefined],
    ['POST', '/dead-letters/redrives', { queue: 'orders' }],
    ['DELETE', '/messages?queue=orders&state=ready', undefined],
  ] as const) {
    const answer = await as(operator.key, method, path, body)
    t.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(body)}`)
  }
  await as(admin.key, 'PUT', '/schedules/nightly', { queue: 'orders', cron: '@yearly', payload: 7 })
  const taken = { queue: 'others', cron: '@yearly', payload: 8 }
  for (const [method, path, body] of [
    ['PUT', '/schedules/nightly', taken],
    ['POST', '/schedules', { ...taken, name: 'nightly' }],
    ['DELETE', '/schedules/nightly', undefined],
    ['GET', '/schedules/nightly', undefined],
  ] as const) {
    t.equal((await as(operator.key, method, path, body)).status, 404, `${method} ${path}`)
  }
  t.match((await as(admin.key, 'GET', '/schedules/nightly')).body, { queue: 'orders', payload: 7 })
})

test('a viewer of one queue hears nothing of other queues and of nodes', { timeout }, async (t) => {
  const events = async (key: string, query: string) => {
    const answer = await fetch(`${url}/api/v1/events?once=true&groups=true&wakes=true${query}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    return answer.text()
  }
  const since = `&lastEventId=${Date.now() - 60_000}-1-x`
  await as(admin.key, 'POST', '/queues/orders/pause')
  await as(admin.key, 'POST', '/queues/orders/resume')
  t.match(await events(admin.key, since), /"queue":"orders","change":"paused"/)
  for (const query of ['', '&queues=orders', '&queues=*', '&queues=others,orders', since]) {
    const text = await events(viewer.key, query)
    t.match(text, /event: rates/, query)
    t.notMatch(text, /orders|event: cluster/, query)
    t.match(text, /"mode":\[\]/, 'the modes of nodes are for those who may observe every queue')
  }
  t.match(await events(admin.key, ''), /"mode":\[\{"node"/)
})

test('one key cannot take all streams of events', { timeout }, async (t) => {
  const open = new AbortController()
  t.teardown(() => open.abort())
  const stream = async (key: string) => {
    const answer = await fetch(`${url}/api/v1/events`, {
      headers: { authorization: `Bearer ${key}` },
      signal: open.signal,
    })
    return answer.status
  }
  const statuses = await Promise.all(Array.from({ length: 120 }, () => stream(viewer.key)))
  t.ok(statuses.includes(503), 'the streams of the key are used up')
  const others = await Promise.all(Array.from({ length: 8 }, () => stream(admin.key)))
  t.same(new Set(others), new Set([200]), 'another key still gets streams')
})

test('a name that cannot be stored hides no entry of the audit log', { timeout }, async (t) => {
  const bodies = ['"queue":"\\u0000"', '"queue":"\\ud800"']
  for (const path of ['others%00', 'a%00b']) {
    await as(undefined, 'GET', `/queues/${path}`)
    await as(operator.key, 'DELETE', `/queues/${path}`)
  }
  for (const body of bodies) {
    await fetch(`${url}/api/v1/configure`, {
      method: 'POST',
      body: `{${body}}`,
      headers: { authorization: `Bearer ${operator.key}`, 'content-type': 'application/json' },
    })
  }
  await as(admin.key, 'PUT', '/queues/witness', {})
  const { body } = await as(admin.key, 'GET', '/audit?limit=100')
  t.match(body.entries, [{ target: 'witness', outcome: 'done' }])
  await eventually(async () => {
    const { entries } = (await as(admin.key, 'GET', '/audit?limit=100')).body
    return entries.some(({ target }: { target: string }) => target === 'others\uFFFD')
  })
  t.same(
    log.filter(({ msg }) => msg === 'audit entries could not be stored'),
    [],
  )
})

test('without a credential no body is read', { timeout }, async (t) => {
  const start = (method: string, path: string, bytes: number) =>
    raw(
      `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
        `content-length: ${bytes}\r\nconnection: close\r\n\r\n{`,
    )
  for (const [method, path, status] of [
    ['POST', '/api/v1/push', 401],
    ['POST', '/api/v1/keys', 401],
    ['POST', '/nothing', 404],
    ['PUT', '/live', 405],
    ['POST', '/api/v1/session/', 404],
  ] as const) {
    const answer = await start(method, path, 1_000_000)
    t.match(answer, new RegExp(`^HTTP/1.1 ${status} `), `${method} ${path}`)
  }
  t.match(await start('POST', '/api/v1/session', 100_000), /^HTTP\/1.1 413 /)
})

test('a page of another origin of the same site uses no session, and ends none', {
  timeout,
}, async (t) => {
  const signedIn = await send(
    'POST',
    `${url}/api/v1/session`,
    { key: admin.key },
    { headers: { 'content-type': 'application/json' } },
  )
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';')
  const ask = async (method: string, path: string, site: string) =>
    (
      await send(method, `${url}${path}`, undefined, {
        headers: { cookie, 'sec-fetch-site': site },
      })
    ).status
  for (const [method, path] of [
    ['GET', '/stats'],
    ['GET', '/api/v1/messages?queue=orders'],
    ['GET', '/api/v1/pop/queue/orders'],
    ['GET', '/api/v1/events?once=true'],
    ['GET', '/api/v1/session'],
    ['DELETE', '/api/v1/session'],
  ] as const) {
    t.equal(await ask(method, path, 'same-site'), 403, `${method} ${path}`)
  }
  t.equal(await ask('GET', '/stats', 'same-origin'), 200)
  t.equal(await ask('GET', '/dashboard/', 'same-site'), 200, 'a link to the dashboard works')
})

test('wrong keys of every kind get the same answer', { timeout }, async (t) => {
  const expired = await makeKey(url, admin.key, { preset: 'admin' })
  const revoked = await makeKey(url, admin.key, { preset: 'admin' })
  await broker.database.pool.query(
    `update rouse.api_keys set expires_at = now() - interval '1 second' where id = $1`,
    [expired.id],
  )
  await as(admin.key, 'DELETE', `/keys/${revoked.id}`)
  await untilKnown(url, expired.key, 401)
  await untilKnown(url, revoked.key, 401)
  const answers = new Set<string>()
  for (const key of [
    expired.key,
    revoked.key,
    `${admin.key.slice(0, 20)}${'0'.repeat(42)}`,
    `rouse_${'0'.repeat(12)}_${'0'.repeat(43)}`,
    'rouse_x',
  ]) {
    const { status, body } = await as(key, 'GET', '/keys')
    const { requestId: _, ...rest } = body
    answers.add(JSON.stringify([status, rest]))
  }
  t.equal(answers.size, 1, [...answers].join('\n'))
})
