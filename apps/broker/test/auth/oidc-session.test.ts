// Browsers that sign in with an OIDC issuer: the authorization code flow with PKCE, against a real issuer.
import { createHash, randomBytes } from 'node:crypto'
import { csrfHeader } from '@rouse/protocol'
import { eventually } from '@rouse/testkit'
import { type Test, test, t as wholeFile } from 'tap'
import { Grants, parseGrant } from '../../src/auth/grants.ts'
import { findTokenSession, signTokenSession } from '../../src/auth/oidc/token-session.ts'
import { startBroker } from '../support/broker.ts'
import { send } from '../support/http.ts'
import { makeKey, sendAs } from '../support/keys.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { audience, redirectUri, startIssuer } from './support/issuer.ts'

const timeout = 120_000
const issuer = await startIssuer(wholeFile as unknown as Test)
const env = {
  ROUSE_OIDC_ISSUER: issuer.url,
  ROUSE_OIDC_AUDIENCE: audience,
  ROUSE_OIDC_CLIENT_ID: 'dashboard',
  ROUSE_OIDC_LOGIN: 'scope=openid observe:* pop:orders admin&resource=urn:rouse:ES256',
}
const broker = await sharedBroker({ env, token: await issuer.sign() })
const { url } = broker
const headers = { 'content-type': 'application/json' }

interface Flow {
  readonly code: string
  readonly codeVerifier: string
  readonly redirectUri: string
}

/** What a browser does until it has a code. */
async function authorize(t: Test): Promise<Flow> {
  const { body } = await send('GET', `${url}/api/v1/session`)
  t.same(body.signInWith, ['key', 'oidc'])
  const codeVerifier = randomBytes(32).toString('base64url')
  const start = new URL(body.authorizationUrl)
  t.equal(start.searchParams.get('code_challenge_method'), 'S256')
  start.searchParams.set('redirect_uri', redirectUri)
  start.searchParams.set('state', 'state-1')
  start.searchParams.set('code_challenge', sha256(codeVerifier))
  const back = await issuer.authorize(start.href)
  t.equal(back.searchParams.get('state'), 'state-1', back.href)
  return { code: back.searchParams.get('code') ?? '', codeVerifier, redirectUri }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

async function signIn(body: object, more: Record<string, string> = {}) {
  const answer = await send('POST', `${url}/api/v1/session`, body, {
    headers: { ...headers, ...more },
  })
  const set = answer.headers.get('set-cookie') ?? ''
  return { ...answer, set, cookie: set.split(';')[0] ?? '' }
}

const ask = async (cookie: string, path: string, more: Record<string, string> = {}, at = url) =>
  (await send('GET', `${at}${path}`, undefined, { headers: { cookie, ...more } })).status

test('a code of the issuer starts a session with the grants of its token, on every node', {
  timeout,
}, async (t) => {
  const { status, body, set, cookie } = await signIn(await authorize(t))
  t.equal(status, 200, JSON.stringify(body))
  t.match(body, { principal: 'oidc:alice', keyId: null, grants: ['observe:*', 'pop:orders'] })
  const seconds = Number(/Max-Age=(\d+)/.exec(set)?.[1])
  t.ok(seconds > 300 && seconds <= 605, `${seconds} s, as the token`)
  t.match(set, /^rouse_session=oidc\.[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/)
  t.notMatch(set, /ey[\w-]+\.ey/, 'the cookie does not hold the token')
  t.equal(await ask(cookie, '/stats'), 200)
  t.equal(await ask(cookie, '/api/v1/keys'), 403, 'no admin by scope')
  t.equal(await ask(cookie, '/api/v1/pop/queue/orders'), 403, 'a pop needs the header')
  t.equal(await ask(cookie, '/api/v1/pop/queue/orders', { [csrfHeader]: '1' }), 204)
  t.equal(await ask(cookie, '/api/v1/pop/queue/other', { [csrfHeader]: '1' }), 403)
  t.equal(await ask(cookie, '/stats', { 'sec-fetch-site': 'cross-site' }), 403)
  const shown = await send('GET', `${url}/api/v1/session`, undefined, { headers: { cookie } })
  t.match(shown.body, { principal: 'oidc:alice', expiresAt: body.expiresAt })
  const second = await startBroker(t, {
    database: broker.database,
    env,
    token: await issuer.sign(),
  })
  await eventually(async () => (await ask(cookie, '/stats', {}, second.url)) === 200)
})

test('a code is for its verifier, its address and one use', { timeout }, async (t) => {
  const flow = await authorize(t)
  for (const wrong of [
    { codeVerifier: 'x'.repeat(43) },
    { code: 'unknown' },
    { redirectUri: 'http://127.0.0.1:9/dashboard/' },
  ]) {
    const other = await authorize(t)
    const { status, set } = await signIn({ ...other, ...wrong })
    t.equal(status, 401, JSON.stringify(wrong))
    t.equal(set, '')
  }
  t.equal((await signIn(flow, { 'sec-fetch-site': 'cross-site' })).status, 403)
  t.equal((await signIn(flow)).status, 200)
  t.equal((await signIn(flow)).status, 401, 'a second time')
  for (const body of [
    {},
    { code: flow.code },
    { ...flow, key: 'rouse_x' },
    { ...flow, codeVerifier: 'short' },
    { ...flow, code: 'x'.repeat(3_000) },
  ]) {
    t.equal((await signIn(body)).status, 400, JSON.stringify(body))
  }
})

test('forged and foreign sessions are refused', { timeout }, async (t) => {
  const { cookie } = await signIn(await authorize(t))
  const [, text = '', signature = ''] = cookie.split('.')
  const claims = JSON.parse(Buffer.from(text, 'base64url').toString()) as [string, number, string[]]
  const forge = (changed: unknown) => Buffer.from(JSON.stringify(changed)).toString('base64url')
  for (const forged of [
    `oidc.${forge([claims[0], claims[1], ['admin']])}.${signature}`,
    `oidc.${forge([claims[0], claims[1] + 60_000, claims[2]])}.${signature}`,
    `oidc.${text}.${'A'.repeat(43)}`,
    `oidc.${text}`,
    `oidc.${text}.${signature}=`,
    `oidc..${signature}`,
    `key.${text}.${signature}`,
  ]) {
    t.equal(await ask(`rouse_session=${forged}`, '/stats'), 401, forged)
  }
  const admin = await issuer.sign({ rouse: ['admin'] })
  const { key, id } = await makeKey(url, admin, { preset: 'viewer' })
  const byKey = await signIn({ key })
  t.match(byKey.body, { keyId: id }, 'a key still starts a session')
  t.equal(await ask(byKey.cookie, '/stats'), 200)
  const elsewhere = await startBroker(t, { database: broker.database, token: key })
  await eventually(async () => (await ask(byKey.cookie, '/stats', {}, elsewhere.url)) === 200)
  t.equal(await ask(cookie, '/stats', {}, elsewhere.url), 401, 'a node without the issuer')
})

test('a session ends with its token, and so do its streams', { timeout }, async (t) => {
  const principal = (endsAtMs: number) => ({
    name: 'oidc:alice',
    grants: new Grants([parseGrant('observe:*', 'grants')]),
    endsAtMs,
  })
  const sign = (text: string) => sha256(`secret ${text}`)
  const session = signTokenSession(principal(1_000), 'issuer', sign)
  t.match(findTokenSession(session, 'issuer', sign, 999), { name: 'oidc:alice', endsAtMs: 1_000 })
  t.equal(findTokenSession(session, 'issuer', sign, 1_000), undefined)
  t.equal(findTokenSession(session, 'another', sign, 0), undefined)
  t.throws(() => findTokenSession(session, 'issuer', () => undefined, 0), {
    code: 'database_unavailable',
  })
  const many = Array.from({ length: 100 }, (_, i) =>
    parseGrant(`observe:${'q'.repeat(60)}${i}`, 'g'),
  )
  t.throws(() => signTokenSession({ ...principal(1), grants: new Grants(many) }, 'issuer', sign), {
    code: 'forbidden',
  })
})

test('without the issuer, sessions stay, and codes get 503', { timeout }, async (t) => {
  const { cookie } = await signIn(await authorize(t))
  const flow = await authorize(t)
  await issuer.stop()
  t.match(await signIn(flow), { status: 503, body: { code: 'issuer_unavailable' } })
  t.equal(await ask(cookie, '/stats'), 200)
  const { status } = await sendAs(await issuer.sign(), 'GET', `${url}/stats`)
  t.equal(status, 200)
})
