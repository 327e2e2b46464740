// The description of the API is complete, and its examples are true: each passes its schema and gets the
// documented status from a node.
import {
  answers,
  closed,
  type Endpoint,
  endpoints,
  exampleParams,
  examples,
  otherAnswers,
  textAnswers,
} from '@rouse/protocol'
import fastify from 'fastify'
import { type Test, test } from 'tap'
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
    const successes = Object.keys(responses).filter((code) => /^2\d\d$/.test(code))
    t.ok(successes.length > 0, operationId)
    for (const code of successes.filter((one) => one !== '204')) {
      const [content] = Object.values(responses[code].content ?? {}) as { schema?: object }[]
      t.ok(content?.schema, `${operationId} has a schema for ${code}`)
    }
    for (const one of parameters) t.ok(one.in === 'query' || one.example !== undefined, operationId)
  }
  t.match(body.paths['/api/v1/push'].post.requestBody.content['application/json'].schema, {
    additionalProperties: false,
    properties: { items: { items: { additionalProperties: false } } },
  })
})

test('/openapi.json names the scheme and the grants of every route', async (t) => {
  const { body } = await send('GET', `${url}/openapi.json`)
  t.match(body.components.securitySchemes, { apiKey: { type: 'http', scheme: 'bearer' } })
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    const operation = body.paths[path][endpoint.method.toLowerCase()]
    const key = keyOf(endpoint)
    if (endpoint.needs === 'nothing') {
      t.match(operation, { security: [], description: 'Needs no credential.' }, key)
      continue
    }
    t.same(operation.security, [{ apiKey: [] }], key)
    t.same(operation['x-rouse-grants'], endpoint.needs, key)
    for (const { verb, orRedacted } of endpoint.needs) {
      t.match(operation.description, new RegExp(`^Needs the grant .*\`${verb}\``), key)
      if (orRedacted !== undefined) t.match(operation.description, `\`${orRedacted}\` is enough`)
    }
  }
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
  const isAnswer = await checkerOf(t)
  for (const endpoint of endpoints) {
    const key = keyOf(endpoint)
    const { query = {}, body, status = 200 } = examples[key] ?? {}
    const live = await prepare(endpoint)
    const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) =>
      encodeURIComponent(live[name] ?? exampleParams[name] ?? ''),
    )
    const search = new URLSearchParams(query).toString()
    const address = `${url}${path}${search === '' ? '' : `?${search}`}`
    const answer = await replay(endpoint, address, withLive(body, live))
    t.equal(answer.status, status, `${key} ${JSON.stringify(answer.body)}`)
    const type = textAnswers[key] ?? 'application/json'
    t.ok(answer.headers.get('content-type')?.startsWith(type), `${key} is ${type}`)
    if (textAnswers[key] === undefined) t.equal(await isAnswer(key, answer.body), 'yes', key)
  }
})

test('other successes have the documented response', async (t) => {
  const isAnswer = await checkerOf(t)
  const queue = exampleParams.queue as string
  await prepare({ method: 'GET', path: '/', summary: '', needs: 'nothing' })
  for (const path of ['/dlq/redrive', '/dead-letters/redrives']) {
    const plan = await api.post(path, { queue, dryRun: true })
    t.equal(plan.status, 200)
    t.equal(await isAnswer(`POST /api/v1${path} 200`, plan.body), 'yes', JSON.stringify(plan.body))
  }
  const listed = await api.get(`/messages?queue=${queue}`)
  t.equal(await isAnswer('GET /api/v1/messages', listed.body), 'yes', 'messages in every state')
  const stats = await send('GET', `${url}/stats?scope=cluster`)
  t.equal(stats.status, 200)
})

/** Whether a response passes the schema of its endpoint, strictly: no field is converted or unknown. */
async function checkerOf(t: Test): Promise<(key: string, answer: unknown) => Promise<string>> {
  const customOptions = { coerceTypes: false, removeAdditional: false, useDefaults: false } as const
  const app = fastify({ bodyLimit: 10_000_000, ajv: { customOptions } })
  t.teardown(() => app.close())
  const schemas = new Map(Object.entries(answers))
  for (const [key, byStatus] of Object.entries(otherAnswers)) {
    for (const [status, schema] of Object.entries(byStatus)) schemas.set(`${key} ${status}`, schema)
  }
  const keys = [...schemas.keys()]
  for (const [i, schema] of [...schemas.values()].entries()) {
    // A body that is not an object could not be sent.
    const body = { type: 'object', required: ['answer'], properties: { answer: closed(schema) } }
    app.post(`/${i}`, { schema: { body } }, async () => 'yes')
  }
  return async (key, answer) => {
    const address = `/${keys.indexOf(key)}`
    const checked = await app.inject({ method: 'POST', url: address, payload: { answer } })
    return checked.body
  }
}

/** The pages and the metrics are not JSON. */
async function replay(endpoint: Endpoint, address: string, body: unknown): Promise<Answer> {
  if (textAnswers[keyOf(endpoint)] === undefined) return send(endpoint.method, address, body)
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
  const made = /\/(keys|session)/.test(path)
    ? await api.post('/keys', { name: 'k', preset: 'viewer' })
    : undefined
  const ids: Record<string, string> = {
    keyId: made?.body.id ?? '',
    key: made?.body.key ?? '',
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
