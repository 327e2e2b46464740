// Every route with every kind of credential. The table below says who passes; it is written by hand, so that a wrong
// declaration of an endpoint is noticed.
import { randomBytes } from 'node:crypto'
import { type Endpoint, endpoints, exampleParams, examples } from '@rouse/protocol'
import { testDatabase } from '@rouse/testkit'
import { type Test, test, t as wholeFile } from 'tap'
import { newApiKey } from '../../src/auth/api-key.ts'
import type { Answer } from '../support/http.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { nodeLogin } from './support/node-login.ts'

const timeout = 300_000
const database = await testDatabase(wholeFile as unknown as Test, { instrumented: false })
/** With the least privileges in the database, so that every route shows that they are enough. */
const login = await nodeLogin(wholeFile as unknown as Test, database)
const { url, log } = await sharedBroker({ database, env: login })
const admin = await makeKey(url, undefined, { preset: 'admin' })

/**
 * The presets that pass, beside `admin`: producer, worker, viewer, operator. And what a key for one queue gets:
 *
 *   queue   passes for that queue, is refused for another
 *   all     is refused: the request is about every queue
 *   any     passes: the response shows only what the key may see
 *   receipt passes: a receipt is the capability; one of another queue is refused if the worker knows the queue
 *   found   passes for that queue; another queue is not there
 */
const table: Readonly<
  Record<string, readonly [string, 'queue' | 'all' | 'any' | 'receipt' | 'found' | 'open']>
> = {
  'GET /': ['', 'open'],
  'GET /openapi.json': ['', 'open'],
  'GET /docs/api': ['', 'open'],
  'GET /docs': ['', 'open'],
  'GET /docs/:page': ['', 'open'],
  'GET /docs/:folder/:page': ['', 'open'],
  'GET /dashboard': ['', 'open'],
  'GET /dashboard/': ['', 'open'],
  'GET /dashboard/:file': ['', 'open'],
  'POST /api/v1/session': ['', 'open'],
  'GET /api/v1/session': ['', 'open'],
  'DELETE /api/v1/session': ['', 'open'],
  'GET /live': ['', 'open'],
  'GET /ready': ['', 'open'],
  'GET /health': ['', 'open'],
  'POST /api/v1/push': ['PWO', 'queue'],
  'GET /api/v1/pop': ['W', 'all'],
  'POST /api/v1/pop': ['W', 'all'],
  'GET /api/v1/pop/queue/:queue': ['W', 'queue'],
  'POST /api/v1/pop/queue/:queue': ['W', 'queue'],
  'GET /api/v1/pop/queue/:queue/partition/:partition': ['W', 'queue'],
  'POST /api/v1/pop/queue/:queue/partition/:partition': ['W', 'queue'],
  'POST /api/v1/ack': ['W', 'receipt'],
  'POST /api/v1/ack/batch': ['W', 'receipt'],
  'POST /api/v1/transaction': ['W', 'queue'],
  'POST /api/v1/lease/:leaseId/extend': ['W', 'receipt'],
  'DELETE /api/v1/lease/:leaseId': ['W', 'receipt'],
  'GET /api/v1/messages': ['VO', 'queue'],
  'DELETE /api/v1/messages': ['O', 'queue'],
  'GET /api/v1/messages/:id': ['VO', 'found'],
  'DELETE /api/v1/messages/:id': ['O', 'found'],
  'POST /api/v1/messages/:id/run-now': ['O', 'found'],
  'POST /api/v1/messages/:id/progress': ['W', 'receipt'],
  'GET /api/v1/messages/:id/why': ['VO', 'found'],
  'GET /api/v1/messages/:partitionId/:transactionId': ['VO', 'found'],
  'DELETE /api/v1/messages/:partitionId/:transactionId': ['O', 'found'],
  'GET /api/v1/dlq': ['VO', 'queue'],
  'DELETE /api/v1/dlq': ['O', 'queue'],
  'GET /api/v1/dlq/groups': ['O', 'queue'],
  'POST /api/v1/dlq/redrive': ['O', 'queue'],
  'GET /api/v1/dlq/redrive/:id': ['VO', 'found'],
  'DELETE /api/v1/dlq/redrive/:id': ['O', 'found'],
  'GET /api/v1/dead-letters': ['VO', 'queue'],
  'GET /api/v1/dead-letters/:id': ['VO', 'found'],
  'DELETE /api/v1/dead-letters': ['O', 'queue'],
  'GET /api/v1/dead-letters/errors': ['O', 'queue'],
  'POST /api/v1/dead-letters/redrives': ['O', 'queue'],
  'GET /api/v1/dead-letters/redrives/:id': ['VO', 'found'],
  'DELETE /api/v1/dead-letters/redrives/:id': ['O', 'found'],
  'POST /api/v1/traces': ['W', 'found'],
  'GET /api/v1/traces/:partitionId/:transactionId': ['VO', 'found'],
  'GET /api/v1/traces/by-name/:name': ['VO', 'all'],
  'GET /api/v1/traces/names': ['VO', 'all'],
  'POST /api/v1/configure': ['O', 'queue'],
  'GET /api/v1/queues': ['VO', 'any'],
  'GET /api/v1/queues/:queue': ['VO', 'queue'],
  'PUT /api/v1/queues/:queue': ['O', 'queue'],
  'PATCH /api/v1/queues/:queue': ['O', 'queue'],
  'DELETE /api/v1/queues/:queue': ['O', 'queue'],
  'GET /api/v1/resources/queues': ['VO', 'any'],
  'GET /api/v1/resources/queues/:queue': ['VO', 'queue'],
  'GET /api/v1/resources/namespaces': ['VO', 'all'],
  'GET /api/v1/resources/tasks': ['VO', 'all'],
  'GET /api/v1/resources/overview': ['VO', 'all'],
  'DELETE /api/v1/resources/queues/:queue': ['O', 'queue'],
  'POST /api/v1/queues/:queue/pause': ['O', 'queue'],
  'POST /api/v1/queues/:queue/resume': ['O', 'queue'],
  'POST /api/v1/queues/:queue/purge': ['O', 'queue'],
  'GET /api/v1/queues/:queue/why': ['VO', 'queue'],
  'GET /api/v1/schedules': ['O', 'all'],
  'POST /api/v1/schedules': ['O', 'queue'],
  'GET /api/v1/schedules/:name': ['O', 'found'],
  'PUT /api/v1/schedules/:name': ['O', 'queue'],
  'DELETE /api/v1/schedules/:name': ['O', 'found'],
  'GET /api/v1/groups': ['VO', 'all'],
  'GET /api/v1/groups/:group': ['VO', 'all'],
  'GET /api/v1/groups/:group/queues/:queue': ['VO', 'queue'],
  'DELETE /api/v1/groups/:group': ['O', 'all'],
  'DELETE /api/v1/groups/:group/queues/:queue': ['O', 'queue'],
  'POST /api/v1/groups/:group/queues/:queue/seek': ['O', 'queue'],
  'GET /api/v1/consumer-groups': ['VO', 'all'],
  'GET /api/v1/consumer-groups/lagging': ['VO', 'all'],
  'GET /api/v1/consumer-groups/:group': ['VO', 'all'],
  'DELETE /api/v1/consumer-groups/:group': ['O', 'all'],
  'DELETE /api/v1/consumer-groups/:group/queues/:queue': ['O', 'queue'],
  'POST /api/v1/consumer-groups/:group/queues/:queue/seek': ['O', 'queue'],
  'POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek': ['O', 'queue'],
  'POST /api/v1/consumer-groups/:group/queues/:queue/subscription': ['O', 'queue'],
  'POST /api/v1/consumer-groups/:group/subscription': ['O', 'all'],
  'GET /stats': ['VO', 'all'],
  'GET /metrics': ['VO', 'all'],
  'GET /api/v1/series': ['VO', 'queue'],
  'GET /api/v1/events': ['VO', 'any'],
  'GET /api/v1/nodes': ['VO', 'all'],
  'POST /api/v1/keys': ['', 'all'],
  'GET /api/v1/keys': ['', 'all'],
  'POST /api/v1/keys/:keyId/rotate': ['', 'all'],
  'DELETE /api/v1/keys/:keyId': ['', 'all'],
  'GET /api/v1/audit': ['', 'all'],
}

const queue = 'emails'
const presets = { P: 'producer', W: 'worker', V: 'viewer', O: 'operator' } as const

interface Credential {
  readonly what: string
  readonly token: string | undefined
  /** A letter of the table; undefined if the credential is not valid. */
  readonly preset?: string
  readonly scope?: '*' | 'own' | 'other'
}

test('every route gives every credential what the table says', { timeout }, async (t) => {
  const keys = endpoints.map(({ method, path }) => `${method} ${path}`)
  t.same(
    keys.filter((key) => table[key] === undefined),
    [],
    'every route has a row',
  )
  t.same(
    Object.keys(table).filter((key) => !keys.includes(key)),
    [],
    'every row has a route',
  )
  const credentials = await makeCredentials()
  for (const endpoint of endpoints) {
    const key = `${endpoint.method} ${endpoint.path}`
    const live = await prepare(endpoint)
    const passing = credentials.filter((one) => expectedFor(key, one) === 'passes')
    const refused = credentials.filter((one) => !passing.includes(one))
    // A refused request changes nothing, and nor does a read.
    await Promise.all(refused.map((one) => check(t, endpoint, one, live)))
    if (isRead(endpoint)) await Promise.all(passing.map((one) => check(t, endpoint, one, live)))
    else {
      for (const [i, one] of passing.entries()) {
        await check(t, endpoint, one, i === 0 ? live : await prepare(endpoint))
      }
    }
  }
  const denied = log.filter((entry) => /permission denied|"42501"/.test(JSON.stringify(entry)))
  t.same(denied, [], 'the login of the node was always enough')
})

function isRead({ method, path }: Endpoint): boolean {
  return method === 'GET' && !path.startsWith('/api/v1/pop')
}

test('HEAD needs the same grant as GET', { timeout }, async (t) => {
  for (const { method, path } of endpoints) {
    if (method !== 'GET' || path.startsWith('/api/v1/pop') || path === '/api/v1/events') continue
    const at = `${url}${path.replaceAll(/:(\w+)/g, (_, name: string) => exampleParams[name] ?? 'x')}`
    const { status } = await fetch(at, { method: 'HEAD' })
    t.equal(status, table[`GET ${path}`]?.[1] === 'open' ? 200 : 401, path)
  }
})

async function makeCredentials(): Promise<Credential[]> {
  const valid: Credential[] = [{ what: 'admin', token: admin.key, preset: 'A', scope: '*' }]
  for (const [letter, preset] of Object.entries(presets)) {
    for (const [scope, pattern] of [
      ['*', '*'],
      ['own', 'email*'],
      ['other', 'others'],
    ] as const) {
      const { key } = await makeKey(url, admin.key, { preset, queue: pattern })
      valid.push({ what: `${preset} of ${pattern}`, token: key, preset: letter, scope })
    }
  }
  const expired = await makeKey(url, admin.key, { preset: 'admin' })
  const revoked = await makeKey(url, admin.key, { preset: 'admin' })
  await database.pool.query(
    `update rouse.api_keys set expires_at = now() - interval '1 second' where id = $1`,
    [expired.id],
  )
  await sendAs(admin.key, 'DELETE', `${url}/api/v1/keys/${revoked.id}`)
  await untilKnown(url, revoked.key, 401)
  await untilKnown(url, expired.key, 401)
  return [
    ...valid,
    { what: 'nothing', token: undefined },
    { what: 'malformed', token: 'rouse_x' },
    { what: 'mistyped', token: `${admin.key.slice(0, -1)}${admin.key.endsWith('0') ? '1' : '0'}` },
    { what: 'unknown', token: newApiKey(randomBytes).key },
    { what: 'expired', token: expired.key },
    { what: 'revoked', token: revoked.key },
  ]
}

async function check(
  t: Test,
  endpoint: Endpoint,
  credential: Credential,
  live: Readonly<Record<string, string>>,
): Promise<void> {
  const key = `${endpoint.method} ${endpoint.path}`
  const expected = expectedFor(key, credential)
  const answer = await replay(endpoint, credential.token, live)
  const text = `${key} with ${credential.what}: ${answer.status} ${JSON.stringify(answer.body)}`
  if (expected === 'passes') {
    if (credential.preset === 'V') t.notMatch(text, /planted/, `${key} shows no content`)
    const isForeign = table[key]?.[1] === 'receipt' && credential.scope === 'other'
    if (isForeign && answer.status === 403) return void t.match(answer.body, { grant: 'pop' })
    return void t.equal(answer.status, examples[key]?.status ?? 200, text)
  }
  t.equal(answer.status, expected, text)
  if (expected === 401) {
    t.match(answer.body, { code: 'unauthenticated' })
    t.match(answer.headers.get('www-authenticate'), /^Bearer/)
  }
  if (expected === 403) t.match(answer.body, { code: 'forbidden', grant: /^[a-z]+(:.+)?$/ })
  if (expected === 404) t.match(answer.body, { code: 'not_found' })
}

function expectedFor(key: string, { preset, scope }: Credential): 'passes' | 401 | 403 | 404 {
  const [passing, kind] = table[key] ?? ['', 'all']
  if (kind === 'open') return 'passes'
  if (preset === undefined) return 401
  if (preset === 'A') return 'passes'
  if (!passing.includes(preset)) return 403
  if (scope === '*' || kind === 'any' || kind === 'receipt') return 'passes'
  if (kind === 'all') return 403
  if (scope === 'own') return 'passes'
  return kind === 'found' ? 404 : 403
}

async function replay(
  { method, path }: Endpoint,
  token: string | undefined,
  live: Readonly<Record<string, string>>,
): Promise<Answer> {
  const { query = {}, body } = examples[`${method} ${path}`] ?? {}
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(live[name] ?? exampleParams[name] ?? ''),
  )
  const search = new URLSearchParams(query).toString()
  const at = `${url}${filled}${search === '' ? '' : `?${search}`}`
  if (path !== '/docs/api') return sendAs(token, method, at, withLive(body, live))
  const { status, headers } = await fetch(at)
  return { status, headers, body: undefined }
}

/** The example, with ids that exist, and about one queue only. */
function withLive(value: unknown, live: Readonly<Record<string, string>>): unknown {
  if (value === undefined) return undefined
  return JSON.parse(
    JSON.stringify(value, (name, one: unknown) =>
      name === 'queue' && typeof one === 'string' && !one.includes('*')
        ? queue
        : typeof one === 'string'
          ? (live[name] ?? one)
          : one,
    ),
  )
}

/** Makes what the examples speak of, as in the test of the API's description. Returns the ids. */
async function prepare({ path }: Endpoint): Promise<Readonly<Record<string, string>>> {
  const { partition, group, name } = exampleParams as Record<string, string>
  const api = (method: string, at: string, body?: unknown) =>
    sendAs(admin.key, method, `${url}/api/v1${at}`, body)
  await api('DELETE', `/queues/${queue}`)
  await api('PUT', `/queues/${queue}`, { namespace: 'shop' })
  const item = { queue, partition, payload: 'planted payload', headers: { h: 'planted header' } }
  const items = [{ ...item, dedupeKey: exampleParams.transactionId }, item]
  const pushed = await api('POST', '/push', { items })
  const popped = await api('GET', `/pop/queue/${queue}?consumerGroup=${group}`)
  const { partitionId, transactionId, leaseId } = popped.body.messages[0]
  const ack = { partitionId, transactionId, leaseId, status: 'dlq', errorCode: 'SMTP_451' }
  const error = 'planted error'
  await api('POST', '/ack', { ...ack, error })
  const ids: Record<string, string> = { id: pushed.body[0].id, partitionId, key: admin.key }
  if (path.startsWith('/api/v1/messages/:id')) {
    const items = [{ queue, payload: 'planted payload', delayMs: 60_000 }]
    ids.id = (await api('POST', '/push', { items })).body[0].id
  }
  if (path.includes('/schedules')) {
    await api('PUT', `/schedules/${name}`, { queue, cron: '@yearly' })
  }
  if (path.includes('/redrive')) {
    ids.id = (await api('POST', '/dead-letters/redrives', { queue, rate: 1 })).body.id
  }
  if (path.includes('/keys')) ids.keyId = (await makeKey(url, admin.key, { preset: 'viewer' })).id
  if (!path.startsWith('/api/v1/pop')) {
    const [leased] = (await api('GET', `/pop/queue/${queue}`)).body.messages
    Object.assign(ids, { leaseId: leased.leaseId, receipt: leased.receipt })
    if (path.endsWith('/progress')) ids.id = leased.id
  }
  return ids
}
