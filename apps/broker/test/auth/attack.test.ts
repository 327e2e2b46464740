// What an attacker with an open port tries: without a credential, with the key of a viewer, and with the key of a
// producer for another queue. Each request must reach nothing, whatever form it has.
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { type Test, test } from 'tap'
import { ackOf, send } from '../support/http.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { disguisedPaths, forgedHeaders } from './support/attacks.ts'

const timeout = 60_000
const broker = await sharedBroker({ env: { ROUSE_CORS_ORIGINS: 'https://app.example' } })
const { url, log } = broker
const { hostname, port, host } = new URL(url)
const admin = await makeKey(url, undefined, { preset: 'admin' })
const viewer = await makeKey(url, admin.key, { preset: 'viewer' })
const producer = await makeKey(url, admin.key, { preset: 'producer', queue: 'others' })
const consumer = await makeKey(url, admin.key, { preset: 'worker', queue: 'others' })
await untilKnown(url, consumer.key, 403)
/** In every answer to an attacker this text would be a find. */
const marker = 'planted-content'
const target = await plant()
const found: string[] = []

/** A queue with a payload, headers, error texts and traces. */
async function plant() {
  const api = (method: string, path: string, body?: unknown) =>
    sendAs(admin.key, method, `${url}/api/v1${path}`, body)
  await api('PUT', '/queues/orders', { options: { retryDelay: 60_000 } })
  const item = { queue: 'orders', partition: 'p', payload: marker, headers: { x: marker } }
  const pushed = await api('POST', '/push', { items: [item, item, { ...item, partition: 'q' }] })
  const [first] = (await api('GET', '/pop/queue/orders/partition/p')).body.messages
  const error = { status: 'failed', error: marker }
  await api('POST', '/ack', { ...ackOf(first), ...error })
  const [second] = (await api('GET', '/pop/queue/orders/partition/q')).body.messages
  await api('POST', '/ack', { ...ackOf(second), ...error, status: 'dlq' })
  const { partitionId, transactionId } = first
  const trace = { partitionId, transactionId, traceNames: ['step'], data: { x: marker } }
  await api('POST', '/traces', trace)
  await api('PUT', '/schedules/nightly', { queue: 'orders', cron: '@yearly', payload: marker })
  return { ids: pushed.body.map(({ id }: { id: string }) => id), partitionId, transactionId }
}

/** Raw bytes on a connection of their own; resolves to what came back. */
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

function get(path: string, more = ''): string {
  return `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n${more}\r\n`
}

/** Fails unless every response of the text is an error, and none has content. */
function refuses(t: Test, text: string, what: string): void {
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
  const isRefused = statuses.every((status) => status >= 400) && !text.includes(marker)
  if (!isRefused) found.push(what)
  t.ok(isRefused, `${what}: ${statuses.join()}`)
}

test('without a credential, no form of a path or a header leads anywhere', {
  timeout,
}, async (t) => {
  for (const path of disguisedPaths(host)) refuses(t, await raw(get(path)), path)
  for (const header of forgedHeaders(admin)) {
    refuses(t, await raw(get('/api/v1/keys', `${header}\r\n`)), header)
  }
  for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'PATCH', 'PUT', 'DELETE', 'get', 'PROPFIND']) {
    const text = await raw(get('/api/v1/keys').replace('GET', method))
    refuses(t, text, method)
  }
  refuses(t, await raw(`CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\n\r\n`), 'CONNECT')
})

test('requests cannot be smuggled behind one another, and keep no one else’s rights', {
  timeout,
}, async (t) => {
  const open = `GET /live HTTP/1.1\r\nhost: ${host}\r\n`
  const hidden = get('/api/v1/keys')
  const body = `0\r\n\r\n${hidden}`
  for (const [what, text] of Object.entries({
    'content-length and chunked': `POST /live HTTP/1.1\r\nhost: ${host}\r\ncontent-length: ${body.length}\r\ntransfer-encoding: chunked\r\n\r\n${body}`,
    'two lengths': `${open}content-length: 0\r\ncontent-length: ${hidden.length}\r\n\r\n${hidden}`,
    'a folded header': `${open}x: a\r\n b\r\n\r\n${hidden}`,
    'a space before the colon': `${open}content-length : 0\r\n\r\n${hidden}`,
    'a bare line feed': `GET /live HTTP/1.1\nhost: ${host}\n\n${hidden}`,
    'no host': 'GET /api/v1/keys HTTP/1.1\r\nconnection: close\r\n\r\n',
    'HTTP/1.0': 'GET /api/v1/keys HTTP/1.0\r\n\r\n',
    'two credentials': get(
      '/stats',
      `authorization: Bearer x\r\nauthorization: Bearer ${admin.key}\r\n`,
    ),
  })) {
    const answer = await raw(text)
    t.notMatch(answer, /"keys":|"waiting":/, what)
    if (/"keys":|"waiting":/.test(answer)) found.push(what)
  }
  const bearer = `authorization: Bearer ${admin.key}\r\n`
  const pipelined = await raw(
    `GET /api/v1/keys HTTP/1.1\r\nhost: ${host}\r\n${bearer}\r\n${get('/api/v1/keys')}`,
  )
  const statuses = [...pipelined.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  t.same(statuses, ['200', '401'], 'the second request on a connection has no credential')
})

test('a web page of another site reads and does nothing, and a listed one needs a credential', {
  timeout,
}, async (t) => {
  const ask = (headers: Record<string, string>, method = 'GET', path = '/stats') =>
    send(method, `${url}${path}`, undefined, { headers })
  const authorization = `Bearer ${admin.key}`
  const evil = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  t.equal((await ask({ ...evil, authorization })).status, 403)
  t.equal((await ask({ ...evil }, 'GET', '/api/v1/pop/queue/orders')).status, 403)
  const preflight = { 'access-control-request-method': 'POST' }
  const refused = await ask({ ...evil, ...preflight }, 'OPTIONS', '/api/v1/push')
  t.equal(refused.status, 405)
  for (const name of refused.headers.keys()) t.notMatch(name, /^access-control-/)
  const page = { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }
  const allowed = await ask({ ...page, ...preflight }, 'OPTIONS', '/api/v1/push')
  t.equal(allowed.status, 204)
  t.equal(allowed.headers.get('access-control-allow-origin'), 'https://app.example')
  t.equal(allowed.headers.get('access-control-allow-credentials'), null)
  t.match(allowed.headers.get('access-control-allow-headers'), /authorization/)
  t.equal((await ask(page)).status, 401)
  const answer = await ask({ ...page, authorization })
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('access-control-allow-origin'), 'https://app.example')
  t.match(answer.headers.get('vary'), /origin/)
})

test('a viewer gets names and numbers, but no content', { timeout }, async (t) => {
  const [id] = target.ids
  const { partitionId, transactionId } = target
  const reads = [
    `/api/v1/messages/${id}`,
    `/api/v1/messages/${target.ids[2]}`,
    '/api/v1/messages?queue=orders',
    '/api/v1/messages?queue=orders&follow=true',
    '/api/v1/messages?queue=orders&status=retrying',
    `/api/v1/messages/${partitionId}/${transactionId}`,
    '/api/v1/dlq',
    '/api/v1/dlq?queue=orders',
    '/api/v1/dead-letters',
    `/api/v1/dead-letters/${target.ids[2]}`,
    `/api/v1/traces/${partitionId}/${transactionId}`,
    '/api/v1/traces/by-name/step',
    '/api/v1/traces/names',
    '/api/v1/queues',
    '/api/v1/queues/orders',
    '/api/v1/queues/orders/why',
    '/api/v1/resources/queues/orders',
    '/api/v1/resources/overview',
    '/api/v1/groups',
    '/api/v1/groups/default/queues/orders',
    '/api/v1/consumer-groups',
    '/api/v1/series?queue=orders',
    '/api/v1/nodes',
    '/stats',
    '/metrics',
  ]
  for (const path of reads) {
    const answer = await fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${viewer.key}` },
    })
    const text = await answer.text()
    t.equal(answer.status, 200, path)
    t.notOk(text.includes(marker), `${path} shows no content`)
    if (text.includes(marker)) found.push(path)
    const full = await sendAs(admin.key, 'GET', `${url}${path}`)
    const hasContent = JSON.stringify(full.body ?? '').includes(marker)
    // Responses about queues leave out only the text of the last error, and have no `redacted`.
    const isQueue = path.startsWith('/api/v1/queues')
    if (hasContent && !isQueue) t.match(text, /"redacted":true/, path)
  }
  const byText = `errorMessage=${marker}`
  for (const path of [
    `/api/v1/dlq?queue=orders&${byText}`,
    `/api/v1/dead-letters?${byText}`,
    '/api/v1/dlq/groups',
    '/api/v1/dead-letters/errors',
    '/api/v1/schedules',
    '/api/v1/schedules/nightly',
    '/api/v1/pop/queue/orders',
    '/api/v1/keys',
    '/api/v1/audit',
  ]) {
    t.equal((await sendAs(viewer.key, 'GET', `${url}${path}`)).status, 403, path)
  }
  const peeker = await makeKey(url, admin.key, { grants: ['peek:orders'] })
  await untilKnown(url, peeker.key, 403)
  const shown = await sendAs(peeker.key, 'GET', `${url}/api/v1/messages/${id}`)
  t.match(shown, { status: 200, body: { data: marker } }, 'peek alone is enough for content')
})

test('a producer of another queue reaches no other queue, and learns of none', {
  timeout,
}, async (t) => {
  const token = producer.key
  const push = (body: unknown) => sendAs(token, 'POST', `${url}/api/v1/push`, body)
  t.equal((await push({ items: [{ queue: 'others', payload: 1 }] })).status, 201)
  for (const items of [
    [{ queue: 'orders', payload: 1 }],
    [
      { queue: 'others', payload: 1 },
      { queue: 'orders', payload: 1 },
    ],
    [{ queue: 'Others', payload: 1 }],
    [{ queue: ' others', payload: 1 }],
    [{ queue: 'others ', payload: 1 }],
    [{ queue: 'others\u200b', payload: 1 }],
    [{ queue: 'ot\u0068ers/../orders', payload: 1 }],
    [{ queue: ['others'], payload: 1 }],
    [{ queue: { toString: 'others' }, payload: 1 }],
    [{ queue: null, payload: 1 }],
    { 0: { queue: 'orders', payload: 1 }, length: 1 },
    [[{ queue: 'orders', payload: 1 }]],
  ]) {
    const { status } = await push({ items })
    t.ok(status === 403 || status === 400, `${JSON.stringify(items)}: ${status}`)
    if (status < 400) found.push(JSON.stringify(items))
  }
  for (const text of [
    '{"items":[{"queue":"others","queue":"orders","payload":1}]}',
    '{"items":[{"__proto__":{"queue":"orders"},"payload":1}]}',
    '{"items":[{"queue":"others","payload":1}],"items":[{"queue":"orders","payload":1}]}',
    '{"items":[{"queue":"others","payload":1}],"queue":"orders"}',
    '{"queue":"orders","payload":1}',
  ]) {
    const answer = await fetch(`${url}/api/v1/push?queue=orders`, {
      method: 'POST',
      body: text,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    t.ok(answer.status === 403 || answer.status === 400, `${text}: ${answer.status}`)
  }
  const transaction = (operations: unknown) =>
    sendAs(consumer.key, 'POST', `${url}/api/v1/transaction`, { operations })
  for (const operations of [
    [{ type: 'push', items: [{ queue: 'orders', payload: 1 }] }],
    [{ type: 'PUSH', items: [{ queue: 'orders', payload: 1 }] }],
    [{ type: ['push'], items: [{ queue: 'orders', payload: 1 }] }],
    [{ items: [{ queue: 'orders', payload: 1 }] }],
    { 0: { type: 'push', items: [{ queue: 'orders', payload: 1 }] } },
  ]) {
    const { status } = await transaction(operations)
    t.ok(status === 403 || status === 400, `${JSON.stringify(operations)}: ${status}`)
  }
  const [id] = target.ids
  const { partitionId, transactionId } = target
  for (const [method, exists, missing] of [
    ['GET', '/api/v1/queues/orders', '/api/v1/queues/nothing'],
    ['DELETE', '/api/v1/queues/orders', '/api/v1/queues/nothing'],
    ['GET', '/api/v1/messages?queue=orders', '/api/v1/messages?queue=nothing'],
    ['GET', `/api/v1/messages/${id}`, `/api/v1/messages/${randomBytes(16).toString('hex')}`],
    ['DELETE', `/api/v1/messages/${id}`, '/api/v1/messages/nothing'],
    ['GET', '/api/v1/schedules/nightly', '/api/v1/schedules/nothing'],
    ['GET', '/api/v1/pop/queue/orders', '/api/v1/pop/queue/nothing'],
  ] as const) {
    for (const key of [token, consumer.key]) {
      const one = await sendAs(key, method, `${url}${exists}`)
      const other = await sendAs(key, method, `${url}${missing}`)
      t.equal(one.status, 403, exists)
      t.equal(other.status, 403, missing)
    }
  }
  const note = { partitionId, transactionId, data: 1 }
  const traced = await sendAs(consumer.key, 'POST', `${url}/api/v1/traces`, note)
  const absent = { ...note, partitionId: '999999' }
  const untraced = await sendAs(consumer.key, 'POST', `${url}/api/v1/traces`, absent)
  t.same([traced.status, untraced.status], [404, 404], 'a partition of another queue is not there')
  for (const path of ['/api/v1/pop', '/api/v1/pop?namespace=x', '/api/v1/pop?task=x']) {
    t.equal((await sendAs(consumer.key, 'GET', `${url}${path}`)).status, 403, path)
  }
  const lists = await makeKey(url, admin.key, { grants: ['observe:others', 'peek:others'] })
  await untilKnown(url, lists.key, 403)
  const cursor = `log-${partitionId}-0`
  const page = await sendAs(
    lists.key,
    'GET',
    `${url}/api/v1/messages?queue=others&cursor=${cursor}`,
  )
  t.equal(page.status, 400, 'a cursor of another form is refused')
  t.notOk(JSON.stringify(page.body).includes(marker), 'a cursor leads to no other queue')
  for (const query of [
    'queue=others&queue=orders',
    'queue[]=others',
    'queue=others%00',
    'Queue=others',
  ]) {
    const { status } = await sendAs(lists.key, 'GET', `${url}/api/v1/messages?${query}`)
    t.ok(status === 403 || status === 400, query)
  }
})

test('a receipt of another queue, and ids from elsewhere, lead to nothing', {
  timeout,
}, async (t) => {
  const as = (key: string, method: string, path: string, body?: unknown) =>
    sendAs(key, method, `${url}/api/v1${path}`, body)
  await as(admin.key, 'POST', '/push', { items: [{ queue: 'leaked', payload: marker }] })
  // So that both workers know the queue of the partition.
  const known = async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        fetch(`${url}/api/v1/push`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${admin.key}`,
            'content-type': 'application/json',
            connection: 'close',
          },
          body: JSON.stringify({ items: [{ queue: 'leaked', payload: 1 }] }),
        }),
      ),
    )
    return answers.every(({ ok }) => ok)
  }
  t.ok(await known())
  const [stolen] = (await as(admin.key, 'GET', '/pop/queue/leaked')).body.messages
  const { receipt, leaseId, partitionId, transactionId } = stolen
  const ids = { leaseId, partitionId, transactionId }
  await as(admin.key, 'POST', '/push', { items: [{ queue: 'others', payload: 1 }] })
  const [own] = (await as(consumer.key, 'GET', '/pop/queue/others')).body.messages
  for (const [method, path, body] of [
    ['POST', '/ack', { receipt }],
    ['POST', '/ack', ids],
    ['POST', '/ack/batch', { acknowledgments: [{ receipt: own.receipt }, { receipt }] }],
    ['POST', '/transaction', { operations: [{ type: 'ack', receipt }] }],
    [
      'POST',
      '/transaction',
      { operations: [{ type: 'ack', partitionId, transactionId }], requiredLeases: [own.leaseId] },
    ],
    ['POST', `/lease/${receipt}/extend`, {}],
    ['DELETE', `/lease/${receipt}`, undefined],
    ['POST', '/ack', { partitionId, transactionId }],
    ['POST', '/ack', { partitionId, transactionId, leaseId: own.leaseId }],
  ] as const) {
    const { status } = await as(consumer.key, method, path, body)
    t.ok(status === 403 || status === 409 || status === 400, `${method} ${path}: ${status}`)
  }
  const done = await as(consumer.key, 'POST', '/ack', { receipt: own.receipt })
  t.equal(done.status, 200, 'its own receipt still works, because nothing of the batch was done')
  const operator = await makeKey(url, admin.key, { preset: 'operator', queue: 'others' })
  await untilKnown(url, operator.key, 403)
  const where = { ids: [target.ids[2]] }
  const plan = { queue: 'others', where, dryRun: true }
  const planned = await as(operator.key, 'POST', '/dead-letters/redrives', plan)
  t.match(planned, { status: 200, body: { total: 0 } }, 'a dead letter of another queue')
  for (const key of [viewer.key, admin.key]) {
    for (const path of ['/messages?queue=leaked', `/messages/${stolen.id}`, '/groups', '/queues']) {
      const text = JSON.stringify((await as(key, 'GET', path)).body)
      t.notOk(text.includes(leaseId) || text.includes(receipt), `${path} shows no lease id`)
    }
  }
  t.equal(
    (await as(admin.key, 'POST', '/ack', { receipt })).status,
    200,
    'the lease was not touched',
  )
})

test('nothing was reached, and the attempts are recorded', { timeout }, async (t) => {
  t.same(found, [])
  t.same(
    log.filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
    'no attempt caused an internal error',
  )
  const { body } = await sendAs(admin.key, 'GET', `${url}/api/v1/audit?outcome=refused&limit=100`)
  t.ok(body.entries.length > 5)
  const { rows } = await broker.database.pool.query('select name from rouse.queues order by name')
  t.same(
    rows.map(({ name }: { name: string }) => name),
    ['leaked', 'orders', 'others'],
  )
})
