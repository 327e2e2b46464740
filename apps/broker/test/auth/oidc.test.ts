// Access tokens of an OIDC issuer, on a running node and against attacks.
import { createHmac, createPublicKey } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventually } from '@rouse/testkit'
import { base64url, type JWTHeaderParameters, SignJWT } from 'jose'
import { type Test, test, t as wholeFile } from 'tap'
import { discoveryUrl, isTrustedUrl } from '../../src/auth/oidc/issuer-document.ts'
import { IssuerTokens } from '../../src/auth/oidc/issuer-tokens.ts'
import { makeKey, sendAs } from '../support/keys.ts'
import { childrenOf } from '../support/process-tree.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { audience, newKey, startIssuer } from './support/issuer.ts'

const timeout = 60_000
const patience = { timeoutMs: 30_000 }
const issuer = await startIssuer(wholeFile as unknown as Test)
const { url, child, log } = await sharedBroker({
  env: { ROUSE_OIDC_ISSUER: issuer.url, ROUSE_OIDC_AUDIENCE: audience },
  token: await issuer.sign(),
})
const stats = async (token?: string) => (await sendAs(token, 'GET', `${url}/stats`)).status
const jwksReads = () => issuer.counts.get('/jwks') ?? 0

test('tokens of the issuer have the grants of their scope, with every algorithm', {
  timeout,
}, async (t) => {
  t.equal(await stats(), 401, 'a node with an issuer is closed')
  const push = { items: [{ queue: 'orders', payload: 1 }] }
  for (const algorithm of ['RS256', 'ES256', 'EdDSA'] as const) {
    const token = await issuer.request(algorithm, 'push:orders observe:orders admin')
    for (const _ of ['verified', 'known']) {
      t.equal((await sendAs(token, 'POST', `${url}/api/v1/push`, push)).status, 201, algorithm)
    }
    const at = (queue: string) => `${url}/api/v1/queues/${queue}`
    t.equal((await sendAs(token, 'GET', at('orders'))).status, 200)
    t.equal((await sendAs(token, 'GET', at('other'))).status, 403)
    t.match(await sendAs(token, 'GET', `${url}/api/v1/keys`), { status: 403 }, 'not by scope')
  }
})

test('the claim rouse counts before the scope, and only grants of the right form count', {
  timeout,
}, async (t) => {
  const admin = await issuer.sign({ rouse: ['admin', 'fly:*', 7, 'observe'], scope: 'observe:*' })
  t.equal((await sendAs(admin, 'GET', `${url}/api/v1/keys`)).status, 200)
  t.equal(await stats(admin), 403)
  for (const rouse of [[], 'observe:*', { observe: '*' }, null]) {
    t.equal(await stats(await issuer.sign({ rouse, scope: 'observe:*' })), 403)
  }
  const many = Array.from({ length: 101 }, (_, i) => `observe:q${i}`)
  t.equal(await stats(await issuer.sign({ rouse: many })), 401)
  const { key } = await makeKey(url, admin, { preset: 'viewer' })
  t.equal(await stats(key), 200, 'API keys work beside tokens')
  const { body } = await sendAs(admin, 'GET', `${url}/api/v1/audit?outcome=done`)
  t.match(body.entries, [{ principal: 'oidc:alice', verb: 'admin' }])
})

test('claims that are wrong or missing are refused', { timeout }, async (t) => {
  t.equal(await stats(await issuer.sign()), 200)
  const seconds = Math.floor(Date.now() / 1_000)
  for (const claims of [
    { aud: 'another' },
    { aud: ['another', 'others'] },
    { aud: undefined },
    { iss: 'https://accounts.example' },
    { iss: `${issuer.url}/` },
    { iss: undefined },
    { exp: seconds - 10 },
    { exp: undefined },
    { exp: '9999999999' },
    { sub: undefined },
    { nbf: seconds + 60 },
  ]) {
    const answer = await sendAs(await issuer.sign(claims), 'GET', `${url}/stats`)
    t.match(answer, { status: 401, body: { code: 'unauthenticated' } }, JSON.stringify(claims))
  }
})

test('forged tokens are refused', { timeout }, async (t) => {
  const { RS256, ES256 } = issuer.keys
  const exp = Math.floor(Date.now() / 1_000) + 60
  const payload = { iss: issuer.url, aud: audience, sub: 'eve', exp, rouse: ['observe:*'] }
  const part = (value: unknown) => base64url.encode(JSON.stringify(value))
  const unsigned = (header: object) => `${part(header)}.${part(payload)}.`
  const hmac = (secret: string | Buffer) => {
    const text = `${part({ alg: 'HS256', kid: 'RS256' })}.${part(payload)}`
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
  }
  const { d: _, ...publicJwk } = RS256
  const publicKey = createPublicKey({ key: publicJwk as never, format: 'jwk' })
  const own = await newKey('ES256')
  const { d: __, ...ownPublic } = own
  const thief = createServer((_request, response) =>
    response.end(JSON.stringify({ keys: [ownPublic] })),
  )
  let thiefRequests = 0
  thief.on('request', () => (thiefRequests += 1))
  await new Promise<void>((resolve) => thief.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise((resolve) => thief.close(resolve)))
  const thiefUrl = `http://127.0.0.1:${(thief.address() as AddressInfo).port}/`
  const signed = (header: Partial<JWTHeaderParameters>, key = own) =>
    new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid: 'ES256', ...header }).sign(key)
  const valid = await issuer.sign()
  const [head = '', claims = '', signature = ''] = valid.split('.')
  const forged: Record<string, string> = {
    'alg none': unsigned({ alg: 'none', kid: 'ES256' }),
    'alg nOnE': unsigned({ alg: 'nOnE', kid: 'ES256' }),
    'no alg': unsigned({ kid: 'ES256' }),
    'no signature': `${head}.${claims}.`,
    'two parts': `${head}.${claims}`,
    'HS256 with the public key as PEM': hmac(publicKey.export({ type: 'spki', format: 'pem' })),
    'HS256 with the public key as DER': hmac(publicKey.export({ type: 'spki', format: 'der' })),
    'HS256 with the public key as JWK': hmac(JSON.stringify(publicJwk)),
    'HS256 with an empty secret': hmac(''),
    'the key of someone else under a known id': await signed({}),
    'a key in the header': await signed({ jwk: ownPublic as never, kid: 'own' }),
    'a key at a URL in the header': await signed({ jku: thiefUrl, kid: 'own' } as never),
    'certificates in the header': await signed({ x5u: thiefUrl } as never),
    'an id of a key of another kind': await signed({ kid: 'RS256' }, ES256),
    'an algorithm that is not allowed': await new SignJWT(payload)
      .setProtectedHeader({ alg: 'RS512', kid: 'RS256' })
      .sign({ ...RS256, alg: 'RS512' }),
    'an extension that must be understood': await new SignJWT(payload)
      .setProtectedHeader({ alg: 'ES256', kid: 'ES256', crit: ['x'], x: 1 } as never)
      .sign(ES256, { crit: { x: true } })
      .catch(() => `${part({ alg: 'ES256', crit: ['x'], x: 1 })}.${claims}.${signature}`),
    'other claims': `${head}.${part(payload)}.${signature}`,
    'a signature of zeros': `${head}.${claims}.${base64url.encode(new Uint8Array(64))}`,
    'an encrypted token': `${part({ alg: 'dir', enc: 'A256GCM' })}..${claims}.${claims}.${claims}`,
    'a path as key id': await signed({ kid: '../../../../dev/null' }),
    'no JSON': 'eyJ.eyJ.eyJ',
  }
  for (const [what, token] of Object.entries(forged)) {
    const answer = await sendAs(token, 'GET', `${url}/stats`)
    t.match(answer, { status: 401, body: { code: 'unauthenticated' } }, what)
    t.notOk(JSON.stringify(answer.body).includes(token), 'the answer does not repeat the token')
  }
  t.equal(thiefRequests, 0, 'the node reads no keys from a URL of a token')
  t.equal(await stats(`${head}.${claims}.${'A'.repeat(60_000)}`), 431, 'a huge token')
  t.equal(await stats(valid), 200)
  const text = JSON.stringify(log)
  t.notOk(text.includes(signature), 'no token in the log')
})

test('a flood of unknown key ids costs the issuer one request a minute', { timeout }, async (t) => {
  const key = await newKey('ES256')
  const before = jwksReads()
  for (let round = 0; round < 10; round += 1) {
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        new SignJWT({})
          .setProtectedHeader({ alg: 'ES256', kid: `unknown-${round}-${i}` })
          .sign(key),
      ),
    )
    const statuses = await Promise.all(tokens.map(stats))
    t.ok(statuses.every((status) => status === 401))
  }
  t.ok(jwksReads() - before <= 1, `${jwksReads() - before} requests`)
  t.equal(await stats(await issuer.sign()), 200)
})

test('a poll ends when its token does, and takes nothing', { timeout }, async (t) => {
  // Five seconds are added for clocks that differ.
  const token = await issuer.sign({ rouse: ['pop:q'], lifeMs: -3_000 })
  const poll = `${url}/api/v1/pop/queue/q?wait=true&timeout=50000`
  const beganAtMs = performance.now()
  t.match(await sendAs(token, 'GET', poll), { status: 401, body: { detail: /has expired/ } })
  t.ok(performance.now() - beganAtMs > 500, 'it had begun to wait')
  t.ok(performance.now() - beganAtMs < 10_000)
  t.equal((await sendAs(token, 'GET', poll)).status, 401, 'a known token')
  const other = await issuer.sign({ rouse: ['pop:q', 'push:q'] })
  await sendAs(other, 'POST', `${url}/api/v1/push`, { items: [{ queue: 'q', payload: 1 }] })
  t.equal((await sendAs(other, 'GET', poll)).body.messages.length, 1)
})

test('waiting for a message and a stream of events end with the token', { timeout }, async (t) => {
  const pushing = await issuer.sign({ rouse: ['push:q2'] })
  const items = [{ queue: 'q2', payload: 1 }]
  const pushed = await sendAs(pushing, 'POST', `${url}/api/v1/push`, { items })
  const token = await issuer.sign({ rouse: ['observe:q2'], lifeMs: -2_000, sub: 'waits' })
  const beganAtMs = performance.now()
  const wait = `${url}/api/v1/messages/${pushed.body[0].id}?wait=true&timeout=50000`
  const stream = fetch(`${url}/api/v1/events`, { headers: { authorization: `Bearer ${token}` } })
  t.match(await sendAs(token, 'GET', wait), { status: 401, body: { detail: /has expired/ } })
  t.match(await (await stream).text(), /event: end\ndata: \{"reason":"unauthenticated"\}/)
  t.ok(performance.now() - beganAtMs > 500, 'it had begun to wait')
  t.ok(performance.now() - beganAtMs < 15_000)
})

test('without the issuer its tokens stay valid until they expire, also on a new worker', {
  timeout,
}, async (t) => {
  const before = await issuer.sign()
  t.equal(await stats(before), 200)
  await issuer.stop()
  const short = await issuer.sign({ lifeMs: -2_000, sub: 'short' })
  t.equal(await stats(short), 200)
  t.equal(await stats(await issuer.sign({}, 'RS256')), 200, 'a token that was not seen before')
  const [worker] = childrenOf(child.pid as number) as [number]
  process.kill(worker, 'SIGKILL')
  await eventually(async () => {
    const { body } = await sendAs(before, 'GET', `${url}/stats`).catch(() => ({
      body: { local_sidecars: 0 },
    }))
    return body.local_sidecars === 2 && !childrenOf(child.pid as number).includes(worker)
  }, patience)
  for (let i = 0; i < 10; i += 1) {
    const headers = { authorization: `Bearer ${before}`, connection: 'close' }
    t.equal((await fetch(`${url}/stats`, { headers })).status, 200)
  }
  await eventually(async () => (await stats(short)) === 401, patience)
})

test('new keys of the issuer apply to tokens that are known, too', async (t) => {
  const { d: _, ...publicJwk } = issuer.keys.ES256
  const clock = { nowMs: performance.now.bind(performance), wallMs: Date.now }
  let asked = 0
  const lookAgain = async () => void (asked += 1)
  const tokens = new IssuerTokens({ issuer: issuer.url, audience, clock, lookAgain })
  const token = await issuer.sign()
  await t.rejects(Promise.resolve(tokens.find(token)), { code: 'issuer_unavailable' })
  tokens.update({ keys: [publicJwk] })
  t.match(await tokens.find(token), { name: 'oidc:alice' })
  t.notOk(tokens.find(token) instanceof Promise, 'a known token costs no signature check')
  tokens.update({ keys: [publicJwk] })
  t.notOk(tokens.find(token) instanceof Promise, 'the same keys')
  tokens.update({ keys: [] })
  await t.rejects(Promise.resolve(tokens.find(token)), { code: 'unauthenticated' })
  t.equal(asked, 1)
  t.throws(() => tokens.find(`${token}${'A'.repeat(8_192)}`), { code: 'unauthenticated' })
  t.equal(asked, 1, 'a token that is too long is not even parsed')
})

test('an issuer is trusted by https, and by http on this machine only', async (t) => {
  for (const one of [
    'https://id.example',
    'http://127.0.0.1:9/x',
    'http://[::1]:9',
    'http://localhost',
  ]) {
    t.ok(isTrustedUrl(one), one)
  }
  for (const one of [
    'http://id.example',
    'http://10.0.0.1',
    'ftp://127.0.0.1',
    'x',
    undefined,
    'https://u:p@id.example',
    'http://127.0.0.1.example',
    'file:///etc/passwd',
  ]) {
    t.notOk(isTrustedUrl(one), String(one))
  }
  t.equal(
    discoveryUrl('https://id.example/a/'),
    'https://id.example/a/.well-known/openid-configuration',
  )
})
