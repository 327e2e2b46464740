// The description of the API is complete, and its examples are true: each passes its schema and gets the
// documented status from a node.
import { answers, type Endpoint, endpoints, exampleParams, examples } from '@rouse/protocol'
import fastify from 'fastify'
import { test } from 'tap'
import { bodySchema } from '../../src/http/request-schemas.ts'
import { type Answer, apiOf, send } from '../support/http.ts'
import { sharedBroker } from '../support/shared-broker.ts'

// An example creates an API key, and the others have no credential.
const { url } = await sharedBroker({ env: { ROUSE_INSECURE: '1' } })
const api = apiOf(url)
const keyOf = ({ method, path }: Endpoint) => `${method} ${path}`

test('/openapi.json describes every route', async (t) => {
  const { status, body, headers } = await send('GET', `${url}/openapi.json`)
  t.equal(status, 200)
  t.match(headers.get('content-type'), 'application/json')
  t.match(body, { openapi: '3.1.0', info: { title: 'Rouse', version: /^\d/ } })
  const described = Object.entries(body.paths as Record<string, object>).flatMap(
    ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const known = endpoints.map((one) => keyOf(one).replaceAll(/:(\w+)/g, '{$1}'))
  t.same(described.sort(), known.sort())
  const operations = Object.values(body.paths as Record<string, object>).flatMap(Object.values)
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, endpoints.length)
  for (const { operationId, responses, parameters = [] } of operations) {
    t.ok(
      Object.keys(responses).some((code) => /^2\d\d$/.test(code)),
      operationId,
    )
    for (const one of parameters) t.ok(one.in === 'query' || one.example !== undefined, operationId)
  }
  t.match(body.paths['/api/v1/push'].post.requestBody.content['application/json'].schema, {
    additionalProperties: false,
    properties: { items: { items: { additionalProperties: false } } },
  })
})

test('an example exists for every endpoint with a body, and passes the schema', async (t) => {
  const app = fastify()
  t.teardown(() => app.close())
  const withBody = endpoints.filter(({ body }) => body !== undefined)
  for (const [i, { body, shownBody }] of withBody.entries()) {
    for (const [kind, schema] of [
      ['body', body],
      ['shown', shownBody ?? body],
    ] as const) {
      const options = { schema: { body: bodySchema(schema as object) } }
      app.post(`/${i}/${kind}`, options, async () => 'passed')
    }
  }
  for (const [i, endpoint] of withBody.entries()) {
    const payload = examples[keyOf(endpoint)]?.body as object
    for (const kind of ['body', 'shown']) {
      const answer = await app.inject({ method: 'POST', url: `/${i}/${kind}`, payload })
      t.equal(answer.body, 'passed', `${keyOf(endpoint)} ${kind}`)
    }
  }
  const unused = Object.keys(examples).filter((key) => !endpoints.some((one) => keyOf(one) === key))
  t.same(unused, [])
})

test('every example gets the documented status and response from a node', async (t) => {
  const app = fastify({ bodyLimit: 10_000_000 })
  t.teardown(() => app.close())
  for (const [i, endpoint] of endpoints.entries()) {
    const body = answers[keyOf(endpoint)] ?? {}
    app.post(`/${i}`, { schema: { body } }, async () => 'passed')
  }
  for (const [i, endpoint] of endpoints.entries()) {
    const { query = {}, body, status = 200 } = examples[keyOf(endpoint)] ?? {}
    const live = await prepare(endpoint)
    const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) =>
      encodeURIComponent(live[name] ?? exampleParams[name] ?? ''),
    )
    const search = new URLSearchParams(query).toString()
    const address = `${url}${path}${search === '' ? '' : `?${search}`}`
    const answer = await replay(endpoint.method, address, withLive(body, live))
    t.equal(answer.status, status, `${keyOf(endpoint)} ${JSON.stringify(answer.body)}`)
    if (answers[keyOf(endpoint)] === undefined) continue
    const checked = await app.inject({ method: 'POST', url: `/${i}`, payload: answer.body })
    t.equal(checked.body, 'passed', keyOf(endpoint))
  }
})

/** The pages and the metrics are not JSON. */
async function replay(method: string, address: string, body: unknown): Promise<Answer> {
  if (!/\/docs\b|\/metrics$/.test(address)) return send(method, address, body)
  const response = await fetch(address)
  await response.text()
  const { status, headers } = response
  return { status, headers, body: undefined }
}

/**
 * Makes what the examples speak of: a queue with a leased message, a group with a dead letter, a schedule, a
 * redrive. Returns the ids.
 */
async function prepare({ method, path }: Endpoint): Promise<Readonly<Record<string, string>>> {
  const { queue, partition, group, name } = exampleParams as Record<string, string>
  await api.del(`/queues/${queue}`)
  await send('PUT', api.at(`/queues/${queue}`), { namespace: 'shop' })
  const item = { queue, partition, payload: 1 }
  const pushed = await api.push({ ...item, dedupeKey: exampleParams.transactionId }, item)
  const dead = (await api.pop(queue as string, `?consumerGroup=${group}`)).body.messages[0]
  await api.ack(dead, 'dlq', { errorCode: 'SMTP_451' })
  await send('PUT', api.at(`/schedules/${name}`), { queue: 'reports', cron: '@yearly' })
  const made = path.includes('/keys')
    ? await api.post('/keys', { name: 'k', preset: 'viewer' })
    : undefined
  const ids: Record<string, string> = {
    keyId: made?.body.id ?? '',
    id: pushed.body[0].id,
    partitionId: dead.partitionId,
  }
  if (path.endsWith('/run-now') || (path === '/api/v1/messages/:id' && method === 'DELETE')) {
    ids.id = (await api.push({ ...item, delayMs: 60_000 })).body[0].id
  }
  if (path.includes('/redrive')) {
    const started = await api.post('/dead-letters/redrives', { queue, rate: 1 })
    ids.id = started.body.id
  }
  if (!path.startsWith('/api/v1/pop')) {
    const [leased] = (await api.pop(queue as string)).body.messages
    Object.assign(ids, { leaseId: leased.leaseId, receipt: leased.receipt })
  }
  return ids
}

/** The value with the ids of the examples replaced by existing ones. */
function withLive(value: unknown, live: Readonly<Record<string, string>>): unknown {
  if (value === undefined) return undefined
  return JSON.parse(
    JSON.stringify(value, (key, one: unknown) =>
      typeof one === 'string' ? (live[key] ?? one) : one,
    ),
  )
}

test('/docs/api is a page without external assets', async (t) => {
  const answer = await fetch(`${url}/docs/api`)
  t.equal(answer.status, 200)
  t.match(answer.headers.get('content-type'), 'text/html')
  const page = await answer.text()
  t.notMatch(page, /<script|<link|<img|src=|@import|url\(/)
  for (const { path, summary } of endpoints) {
    t.ok(page.includes(path.replaceAll(/:(\w+)/g, '{$1}')), path)
    t.ok(page.includes(summary.replaceAll('<', '&lt;')), summary)
  }
})

test('/docs serves the documentation, which loads nothing from elsewhere', async (t) => {
  const start = await fetch(`${url}/docs`)
  t.equal(start.status, 200)
  t.equal(start.url, `${url}/docs/index.html`)
  t.match(start.headers.get('content-type'), 'text/html')
  t.match(start.headers.get('content-security-policy'), /default-src 'none'/)
  const page = await start.text()
  for (const [, path = ''] of page.matchAll(/(?:href|src)="([^"#]+)"/g)) {
    t.notMatch(path, /^(https?:)?\/\//)
    t.equal((await fetch(new URL(path, start.url))).status, 200, path)
  }
  t.equal((await fetch(`${url}/docs/search.json`)).status, 200)
  const outside = await send('GET', `${url}/docs/..%2f..%2fpackage.json`)
  t.match(outside, { status: 404, body: { code: 'not_found' } })
})
