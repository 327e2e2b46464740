import type { IncomingHttpHeaders } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'tap'
import { type Access, createAccess } from '../../src/auth/access.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'

const clock = { nowMs: () => 0, wallMs: () => 0 }

function accessOf(settings: object = {}, hasKeys = false) {
  const ring = new KeyRing(clock)
  ring.update({ hasKeys, nodeSecret: '00'.repeat(32), keys: [] })
  const config = {
    host: '127.0.0.1',
    insecure: false,
    advertiseUrl: undefined,
    allowedHosts: [],
    corsOrigins: [],
  }
  return withSocket(createAccess({ ...config, ...settings }, ring, clock))
}

/** On a connection without TLS. */
function withSocket(access: Access) {
  const socket = new Socket()
  return { authenticate: (headers: IncomingHttpHeaders) => access.authenticate(headers, socket) }
}

test('a node on loopback without keys is open, every other node is not', async (t) => {
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    t.match(accessOf({ host }).authenticate({}), { name: 'anonymous' })
    t.throws(() => accessOf({ host }, true).authenticate({}), { code: 'unauthenticated' })
  }
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'node1']) {
    t.throws(() => accessOf({ host }).authenticate({}), { code: 'unauthenticated' })
    t.match(accessOf({ host, insecure: true }, true).authenticate({}), { name: 'anonymous' })
  }
})

test('before the keys are known, no request is served', async (t) => {
  const config = {
    host: '127.0.0.1',
    insecure: false,
    advertiseUrl: undefined,
    allowedHosts: [],
    corsOrigins: [],
  }
  const access = withSocket(createAccess(config, new KeyRing(clock), clock))
  t.throws(() => access.authenticate({}), { code: 'unauthenticated' })
})

test('headers that hold no key of this cluster are refused on a closed node', async (t) => {
  const access = accessOf({}, true)
  for (const authorization of [
    '',
    'Bearer',
    'Bearer ',
    'Bearer x y',
    'Basic dXNlcjpwYXNz',
    'Bearer eyJhbGciOiJub25lIn0.e30.',
    `Bearer rousenode_0_${'0'.repeat(64)}`,
    'bearer rouse_x',
    `Bearer rouse_${'a'.repeat(12)}_${'b'.repeat(43)}`,
  ]) {
    t.throws(
      () => access.authenticate({ authorization }),
      { code: 'unauthenticated' },
      authorization,
    )
  }
})

test('a page of another origin is refused, with or without a credential', async (t) => {
  for (const access of [accessOf(), accessOf({}, true), accessOf({ insecure: true })]) {
    for (const site of ['cross-site', 'same-site', 'another', '']) {
      const headers = { 'sec-fetch-site': site }
      t.throws(() => access.authenticate(headers), { code: 'forbidden' })
      t.throws(() => access.authenticate({ ...headers, authorization: 'Bearer rouse_x' }), {
        code: 'forbidden',
      })
    }
  }
  const listed = accessOf({ corsOrigins: ['https://app.example'] })
  const crossSite = { 'sec-fetch-site': 'cross-site' }
  t.match(listed.authenticate({ ...crossSite, origin: 'https://app.example' }), {
    name: 'anonymous',
  })
  for (const origin of ['https://app.example.evil', 'http://app.example', 'null', undefined]) {
    t.throws(() => listed.authenticate({ ...crossSite, ...(origin && { origin }) }), {
      code: 'forbidden',
    })
  }
  for (const site of ['same-origin', 'none']) {
    t.match(accessOf().authenticate({ 'sec-fetch-site': site }), { name: 'anonymous' })
  }
})

test('a page of another origin is refused where browsers do not say that it is one', async (t) => {
  const host = '127.0.0.1:4600'
  const listed = { corsOrigins: ['https://app.example'] }
  for (const settings of [listed, { ...listed, host: '0.0.0.0', insecure: true }]) {
    const access = accessOf(settings)
    for (const origin of [
      'http://evil.example',
      'http://127.0.0.1:3000',
      'http://127.0.0.1',
      'https://evil.example:4600',
      'null',
      '',
    ]) {
      const upgrade = { upgrade: 'websocket', connection: 'Upgrade' }
      t.throws(() => access.authenticate({ host, origin }), { code: 'forbidden' }, origin)
      t.throws(() => access.authenticate({ host, origin, ...upgrade }), { code: 'forbidden' })
    }
    for (const own of [
      { host, origin: 'http://127.0.0.1:4600' },
      { host, origin: 'https://127.0.0.1:4600' },
      { host: 'localhost', origin: 'http://localhost:8080' },
      { host: '[::1]:4600', origin: 'http://[::1]:4600' },
      { host, origin: 'https://app.example' },
    ]) {
      t.match(access.authenticate(own), { name: 'anonymous' }, own.origin)
    }
  }
})

test('an open node answers to its own names and to addresses only', async (t) => {
  const settings = { advertiseUrl: 'http://Node1.example:4600', allowedHosts: ['rouse.internal'] }
  const access = accessOf(settings)
  for (const host of [
    '127.0.0.1:4600',
    'localhost',
    'LOCALHOST:1',
    'app.localhost',
    '[::1]:4600',
    '10.0.0.7',
    'node1.example:4600',
    'node1.example.',
    'rouse.internal',
  ]) {
    t.match(access.authenticate({ host }), { name: 'anonymous' }, host)
  }
  for (const host of [
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil',
    '0.0.0.0:4600',
    '[::]:4600',
    '[0:0::0]',
    '[::ffff:127.0.0.1]:4600',
    '[::ffff:7f00:1]:4600',
    '[::FFFF:0:0]',
    '',
    'x@localhost',
  ]) {
    t.throws(() => access.authenticate({ host }), { code: 'forbidden' }, host)
    t.throws(() => access.authenticate({ host }), { code: 'forbidden' }, 'again')
  }
})
