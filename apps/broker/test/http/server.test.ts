import { connect } from 'node:net'
import { test } from 'tap'
import { compileOnFirstUse, type SchemaCheck } from '../../src/http/server.ts'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker } from '../support/shared-broker.ts'

const { url } = await sharedBroker({
  env: { ROUSE_NODE_ID: 'n1', ROUSE_HEADERS_TIMEOUT_MS: '500' },
})
const api = apiOf(url)
const json = { 'content-type': 'application/json' }

/** Sends raw bytes. Resolves to everything that was received until the connection closed. */
function raw(text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.on('data', (chunk) => {
      answer += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

test('an error is a problem document with a code, the request id and the node', async (t) => {
  const answer = await send('GET', api.at('/nothing'), undefined, {
    headers: { 'x-request-id': 'abc' },
  })
  t.match(answer, {
    status: 404,
    body: {
      type: 'urn:rouse:error:route_not_found',
      title: String,
      status: 404,
      code: 'route_not_found',
      detail: /\/api\/v1\/nothing/,
      retryable: false,
      requestId: 'abc',
      node: 'n1',
      error: String,
    },
  })
  t.match(answer.headers.get('content-type'), 'application/problem+json')
})

test('a wrong method on a known path is 405 and lists the allowed ones', async (t) => {
  const answer = await send('PUT', api.at('/pop/queue/q'))
  t.match(answer, { status: 405, body: { code: 'method_not_allowed' } })
  t.match(answer.headers.get('allow'), /GET.*POST/)
  t.equal((await send('GET', api.at('/push'))).status, 405)
  t.equal((await fetch(api.at('/pop/queue/q'), { method: 'HEAD' })).status, 405)
})

test('HEAD answers as GET without a body, except on routes that pop', async (t) => {
  const head = (path: string) => fetch(`${url}${path}`, { method: 'HEAD' })
  for (const path of ['/', '/live', '/ready', '/health', '/stats', '/api/v1/resources/queues']) {
    const answer = await head(path)
    t.equal(answer.status, 200, path)
    t.equal(await answer.text(), '')
  }
  t.equal((await head('/api/v1/resources/queues/none')).status, 404)
  t.equal((await head('/stats?scop=node')).status, 400)
  await api.push({ queue: 'headed', payload: 1 })
  for (const path of ['/pop/queue/headed', '/pop/queue/headed/partition/Default', '/pop']) {
    const answer = await head(`/api/v1${path}`)
    t.equal(answer.status, 405, path)
    t.equal(answer.headers.get('allow'), 'GET, POST')
  }
  t.equal((await api.pop('headed')).status, 200, 'the message is still there')
})

test('every answer has x-request-id: the one of the request, or a new one', async (t) => {
  const idOf = async (path: string, init: RequestInit = {}) =>
    (await fetch(`${url}${path}`, init)).headers.get('x-request-id')
  const uuid = /^[0-9a-f-]{36}$/
  for (const path of ['/live', '/nothing', '/api/v1/pop/queue/none', '/api/v1/push', '/%zz']) {
    t.match(await idOf(path), uuid, path)
  }
  t.equal(await idOf('/live', { headers: { 'x-request-id': 'mine' } }), 'mine')
  const body = '{'
  const headers = { ...json, 'x-request-id': 'mine' }
  t.equal(await idOf('/api/v1/push', { method: 'POST', headers, body }), 'mine')
})

test('GET / says what this is', async (t) => {
  const { status, body } = await send('GET', `${url}/`)
  t.equal(status, 200)
  t.match(body, { name: 'rouse', version: /^\d+\.\d+/, node: 'n1' })
  for (const path of Object.values(body.links as Record<string, string>)) {
    t.equal((await fetch(`${url}${path}`)).status, 200, path)
  }
})

test('the documentation is found with and without the last slash', async (t) => {
  for (const path of ['/docs', '/docs/']) {
    const { status, headers } = await fetch(`${url}${path}`, { redirect: 'manual' })
    t.match([status, headers.get('location')], [302, '/docs/index.html'], path)
  }
  t.match((await send('GET', api.at(''))).body, { detail: /openapi\.json/ })
})

test('OPTIONS is 405 with the allowed methods, if no origin is allowed', async (t) => {
  const response = await fetch(api.at('/push'), { method: 'OPTIONS' })
  t.match([response.status, response.headers.get('allow')], [405, 'POST'])
})

test('a body that is not JSON, not UTF-8, of another type or too large is refused', async (t) => {
  const push = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json) =>
    send('POST', api.at('/push'), undefined, { body, headers })
  t.match(await push('{"items":['), { status: 400, body: { code: 'invalid_request' } })
  t.notMatch((await push('{"items": secret}')).body.detail, /secret/)
  t.equal((await push('')).status, 400)
  const broken = Buffer.from('{"items":[{"queue":"q","payload":"x"}]}')
  broken[broken.indexOf('x')] = 0xff
  t.match(await push(new Uint8Array(broken)), { status: 400, body: { detail: /UTF-8/ } })
  t.match(await push('a=1', { 'content-type': 'application/x-www-form-urlencoded' }), {
    status: 415,
    body: { code: 'unsupported_media_type' },
  })
  t.match(await push(`"${'x'.repeat(4 * 1024 * 1024)}"`), {
    status: 413,
    body: { code: 'payload_too_large' },
  })
})

test('bodies of the wrong shape are refused, and values are not coerced', async (t) => {
  for (const body of [
    null,
    [],
    '"x"',
    {},
    { items: {} },
    { items: [null] },
    { items: ['x'] },
    { items: [[]] },
    { items: [{ queue: ['q'], payload: 1 }] },
    { items: [{ queue: 'q', partition: 1, payload: 1 }] },
    { items: [{ queue: 'q', payload: 1, delayMs: true }] },
    { items: [{ queue: 'q', payload: 1, headers: [] }] },
    { items: [{ queue: 'q', payload: 1, headers: 'x' }] },
  ]) {
    t.equal((await api.post('/push', body)).status, 400, JSON.stringify(body))
  }
})

test('broken percent-encoding and bad names in paths are 400', async (t) => {
  for (const path of ['%', '%ff', '%ED%A0%80', '%00', '%0A', '.', 'x'.repeat(256)]) {
    const answer = await raw(
      `GET /api/v1/pop/queue/${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    )
    t.match(answer, /^HTTP\/1\.1 400 .*problem\+json/s, path)
  }
})

test('broken percent-encoding in a query is 400 and names the parameter', async (t) => {
  for (const value of ['%', '%ff', '%ED%A0%80', 'a%zz', 'a%2', '%C3%28', '+%f0%9f%98']) {
    for (const path of ['pop/queue/q', 'pop', 'dlq', 'messages', 'queues/q/why', 'traces/names']) {
      const answer = await api.get(`/${path}?batch=1&consumerGroup=${value}`)
      const errors = [{ field: 'consumerGroup', message: /UTF-8/ }]
      t.match(answer, { status: 400, body: { code: 'invalid_request', errors } }, path + value)
    }
  }
  t.match(await api.post('/push?a=%ff&%zz=1&b=%', { items: [] }), {
    status: 400,
    body: { errors: [{ field: 'a' }, { field: '%zz' }, { field: 'b' }] },
  })
  t.equal((await send('GET', `${url}/stats?scope=%ff`)).status, 400)
  const hash = await raw(
    'GET /api/v1/pop#task=%ff HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
  )
  t.match(hash, /^HTTP\/1\.1 400 .*task must be percent-encoded/s)
})

test('valid percent-encoding in a query is decoded', async (t) => {
  await api.push({ queue: 'encoded', payload: 1 })
  const asked = '?consumerGroup=a+b%2B%25ff%20%C3%A9%3D%26&batch=%31'
  const { body } = await api.pop('encoded', asked)
  t.equal(body.consumerGroup, 'a b+%ff é=&')
  t.match(await api.pop('encoded', '?consumerGroup=%61&consumerGroup=b'), {
    status: 400,
    body: { code: 'invalid_name' },
  })
})

test('headers beyond 8 KiB are 431, and bytes that are not HTTP are 400', async (t) => {
  const big = await raw(`GET /live HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(9_000)}\r\n\r\n`)
  t.match(big, /^HTTP\/1\.1 431 .*headers_too_large/s)
  t.match(await raw('NONSENSE\r\n\r\n'), /^HTTP\/1\.1 400 .*invalid_request/s)
})

test('headers that do not arrive in time are 408', async (t) => {
  t.match(await raw('GET /live HTTP/1.1\r\nhost: localhost\r\n'), /^HTTP\/1\.1 408 .*timeout/s)
})

test('live, ready and stats answer', async (t) => {
  t.match(await send('GET', `${url}/live`), { status: 200, body: { status: 'live', node: 'n1' } })
  t.match(await send('GET', `${url}/ready`), { status: 200, body: { status: 'ready' } })
  // The response needs no query. The shortest of several requests counts, because the machine may be busy.
  const tookMs: number[] = []
  for (let i = 0; i < 10; i += 1) {
    const began = performance.now()
    await send('GET', `${url}/stats`)
    tookMs.push(performance.now() - began)
  }
  t.ok(Math.min(...tookMs) < 10, `${tookMs.join(', ')} ms`)
  const { body } = await send('GET', `${url}/stats`)
  t.match(body, {
    node: 'n1',
    uptime: Number,
    workers: 2,
    local_sidecars: 2,
    group_backoff: {
      groups_tracked: Number,
      groups_in_flight: Number,
      groups_backed_off: Number,
      groups: Array,
    },
    waiting: { total: 0, by_worker: {}, by_queue: {} },
    wakes: { local: Number, ipc: Number, udp: 0, notify: 0, timer: Number, chain: Number },
    mode: { mode: 'healthy', since: /^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/, sinceMs: Number, why: [] },
    peers: [],
    pool: {},
    batches: { push: { calls: Number }, pop: { calls: Number, requests: Number, mean: Number } },
    queries_per_second: {},
  })
  t.match(body.wake_latency.local, { count: Number, sumMs: Number, maxMs: Number, buckets: Array })
  t.same(Object.keys(body.wake_latency), Object.keys(body.wakes))
})

test('a schema is compiled when it is first used, and once', async (t) => {
  const compiled: object[] = []
  const compiler = {
    compile(schema: object): SchemaCheck {
      compiled.push(schema)
      const check: SchemaCheck = (value) => {
        check.errors = value === 1 ? null : [`${String(value)} is not 1`]
        return value === 1
      }
      return check
    },
  }
  compileOnFirstUse(compiler)
  const schema = { const: 1 }
  const check = compiler.compile(schema)
  t.same(compiled, [])
  t.equal(check(2), false)
  t.same(check.errors, ['2 is not 1'])
  t.equal(check(1), true)
  t.equal(check.errors, null)
  t.equal(compiled.length, 1)
  t.equal(compiled[0], schema)
})
