// Sessions of browsers, on two nodes of a cluster.
import { csrfHeader } from '@rouse/protocol'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { send } from '../support/http.ts'
import { makeKey, sendAs } from '../support/keys.ts'
import { sharedBroker, startSecond } from '../support/shared-broker.ts'

const first = await sharedBroker({ env: { ROUSE_BASE_PATH: '/queue' } })
const second = await startSecond(first)
const { url } = first
const admin = await makeKey(url, undefined, { preset: 'admin' })
const operator = await makeKey(url, admin.key, { preset: 'operator', name: 'ops' })
const at = (node: { readonly url: string }, path: string) => `${node.url}/api/v1${path}`

async function signIn(key: string, headers: Record<string, string> = {}) {
  const answer = await send(
    'POST',
    at(first, '/session'),
    { key },
    {
      headers: { 'content-type': 'application/json', ...headers },
    },
  )
  const set = answer.headers.get('set-cookie') ?? ''
  return { ...answer, set, cookie: set.split(';')[0] ?? '' }
}

function sendWith(
  cookie: string,
  method: string,
  to: string,
  headers: Record<string, string> = {},
) {
  return send(method, to, undefined, { headers: { cookie, ...headers } })
}

test('a key starts a session, whose cookie holds no part of the secret and no script can read', async (t) => {
  const { status, body, set, cookie } = await signIn(operator.key)
  t.equal(status, 200)
  t.match(body, { principal: 'ops', keyId: operator.id, isOpen: false, signInWith: ['key'] })
  t.same(body.grants, ['observe:*', 'peek:*', 'manage:*', 'push:*'])
  t.match(set, /^rouse_session=[\w.-]+; Path=\/queue; Max-Age=\d+; HttpOnly; SameSite=Strict$/)
  t.notMatch(set, operator.key.slice(19))
  const shown = await sendWith(cookie, 'GET', at(first, '/session'))
  t.match(shown.body, { principal: 'ops', keyId: operator.id })
  const secure = await signIn(operator.key, { 'x-forwarded-proto': 'https' })
  t.match(secure.set, /; Secure$/)
})

test('a session works on every node, and has the grants of its key', async (t) => {
  const { cookie } = await signIn(operator.key)
  await eventually(
    async () => (await sendWith(cookie, 'GET', at(second, '/queues'))).status === 200,
  )
  t.equal((await sendWith(cookie, 'GET', at(first, '/keys'))).status, 403)
  t.equal((await sendWith(cookie, 'GET', `${url}/stats`)).status, 200)
})

test('a change with a session needs the header against forged requests, and so does a pop', async (t) => {
  const { cookie } = await signIn(admin.key)
  for (const [method, path] of [
    ['PUT', '/queues/forged'],
    ['GET', '/pop/queue/forged'],
    ['DELETE', '/queues/forged'],
  ] as const) {
    const refused = await sendWith(cookie, method, at(first, path))
    t.equal(refused.status, 403, `${method} ${path}`)
    t.match(refused.body, { code: 'forbidden', detail: new RegExp(csrfHeader) })
  }
  const made = await sendWith(cookie, 'PUT', at(first, '/queues/made'), { [csrfHeader]: '1' })
  t.equal(made.status, 200)
  // The header of a key is not added by browsers, so it needs nothing else.
  t.equal((await sendAs(admin.key, 'PUT', at(first, '/queues/made'))).status, 200)
})

test('a changed, unknown or foreign session is refused', async (t) => {
  const { cookie } = await signIn(operator.key)
  const [kind, keyId, expires, signature = ''] = cookie.replace('rouse_session=', '').split('.')
  for (const forged of [
    `${kind}.${admin.id}.${expires}.${signature}`,
    `${kind}.${keyId}.${Number(expires) + 1}.${signature}`,
    `${kind}.${keyId}.${expires}.${signature.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))}`,
    `${kind}.${keyId}.${expires}`,
    'x',
  ]) {
    const { status, body } = await sendWith(`rouse_session=${forged}`, 'GET', at(first, '/queues'))
    t.equal(status, 401, forged)
    t.match(body, { code: 'unauthenticated' })
  }
  const shown = await sendWith('rouse_session=x', 'GET', at(first, '/session'))
  t.equal(shown.status, 200, 'asking who one is never fails for want of a credential')
  t.match(shown.body, { principal: null, grants: [] })
})

test('a wrong key and a page of another site start no session', async (t) => {
  const wrong = await signIn(`${admin.key.slice(0, -1)}${admin.key.endsWith('0') ? '1' : '0'}`)
  t.equal(wrong.status, 401)
  t.equal(wrong.set, '')
  const foreign = await signIn(admin.key, { 'sec-fetch-site': 'cross-site' })
  t.equal(foreign.status, 403)
  t.equal(foreign.set, '')
})

test('signing out removes the cookie', async (t) => {
  const { cookie } = await signIn(operator.key)
  const answer = await sendWith(cookie, 'DELETE', at(first, '/session'))
  t.equal(answer.status, 200)
  t.match(answer.headers.get('set-cookie'), /^rouse_session=; Path=\/queue; Max-Age=0; HttpOnly/)
})

test('a session ends with its key, on every node', async (t) => {
  const key = await makeKey(url, admin.key, { preset: 'viewer' })
  const { cookie } = await signIn(key.key)
  await eventually(
    async () => (await sendWith(cookie, 'GET', at(second, '/queues'))).status === 200,
  )
  await sendAs(admin.key, 'DELETE', at(first, `/keys/${key.id}`))
  t.equal((await sendWith(cookie, 'GET', at(first, '/queues'))).status, 401)
  await eventually(
    async () => (await sendWith(cookie, 'GET', at(second, '/queues'))).status === 401,
  )
})

test('the session of a key that expires ends with it', async (t) => {
  const expiresAt = new Date(Date.now() + 60_000).toISOString()
  const key = await makeKey(url, admin.key, { preset: 'viewer', expiresAt })
  const { set } = await signIn(key.key)
  const seconds = Number(/Max-Age=(\d+)/.exec(set)?.[1])
  t.ok(seconds > 0 && seconds <= 60, `${seconds} s`)
})

test('every path also works with the prefix of ROUSE_BASE_PATH', async (t) => {
  t.equal((await fetch(`${url}/queue/live`)).status, 200)
  t.equal((await fetch(`${url}/queue/dashboard/`)).status, 200)
  t.equal(
    (await fetch(`${url}/queue?x=1`, { headers: { accept: 'application/json' } })).status,
    400,
  )
  t.equal((await fetch(`${url}/queuelive`)).status, 404)
})

test('browsers are sent from / to the dashboard, programs get JSON', async (t) => {
  const browser = await fetch(`${url}/`, { headers: { accept: 'text/html,*/*' } })
  t.equal(browser.url, `${url}/dashboard/`)
  t.match(browser.headers.get('content-type'), 'text/html')
  const policy = browser.headers.get('content-security-policy') ?? ''
  t.match(policy, "default-src 'none'")
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.notMatch(
    await browser.text(),
    /<script(?![^>]*\bsrc=)|<style|style=|\son\w+=/,
    'nothing is inline',
  )
  const program = await send('GET', `${url}/`)
  t.match(program.body, { name: 'rouse', links: { dashboard: '/dashboard/' } })
  const etag = browser.headers.get('etag') ?? ''
  const again = await fetch(`${url}/dashboard/`, { headers: { 'if-none-match': etag } })
  t.equal(again.status, 304)
})
