import crypto, { randomBytes } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import type { KeyTable, LiveKey } from '@rouse/storage'
import { test } from 'tap'
import { apiKeyHash, newApiKey } from '../../src/auth/api-key.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'

const hourMs = 3_600_000

function ringAt(startMs = 1_000_000) {
  const time = { ms: startMs }
  const clock = { nowMs: () => time.ms, wallMs: () => time.ms }
  return { ring: new KeyRing(clock), time }
}

function keyNamed(name: string, more: Partial<LiveKey> = {}) {
  const { id, key } = newApiKey(randomBytes)
  const hash = apiKeyHash(key).toString('hex')
  const live: LiveKey = {
    id,
    name,
    hash,
    grants: ['push:*'],
    limits: {},
    expiresAtMs: null,
    ...more,
  }
  return { key, live }
}

function tableOf(...keys: LiveKey[]): KeyTable {
  return { hasKeys: true, nodeSecret: '00ff'.repeat(16), keys }
}

test('a key is known by its whole text', async (t) => {
  const { ring } = ringAt()
  const a = keyNamed('a')
  const b = keyNamed('b')
  ring.update(tableOf(a.live, b.live))
  for (const _ of ['by its hash', 'by what was shown before']) {
    t.match(ring.find(a.key), { name: 'a', keyId: a.live.id })
    const forged = `${a.key.slice(0, 19)}${b.key.slice(19)}`
    t.throws(() => ring.find(forged), { code: 'unauthenticated' }, 'the secret of another key')
    for (const text of ['', 'rouse_', 'x', `${a.key}x`, a.key.slice(0, -1), keyNamed('c').key]) {
      t.throws(() => ring.find(text), { code: 'unauthenticated' })
    }
  }
})

test('a revoked or expired key is refused at once', async (t) => {
  const { ring, time } = ringAt()
  const a = keyNamed('a', { expiresAtMs: 1_000_500 })
  const b = keyNamed('b')
  ring.update(tableOf(a.live, b.live))
  ring.find(a.key)
  ring.find(b.key)
  time.ms += 500
  t.throws(() => ring.find(a.key), { code: 'unauthenticated' })
  t.notOk(ring.isValid(a.live.id))
  t.ok(ring.isValid(b.live.id))
  ring.update(tableOf(a.live))
  t.throws(() => ring.find(b.key), { code: 'unauthenticated' })
  t.notOk(ring.isValid(b.live.id))
})

test('changed grants of a key apply at once', async (t) => {
  const { ring } = ringAt()
  const a = keyNamed('a')
  ring.update(tableOf(a.live))
  t.ok(ring.find(a.key).grants.everywhere.has('push'))
  ring.update(tableOf({ ...a.live, grants: ['pop:*', 'fly:*'] }))
  t.notOk(ring.find(a.key).grants.coversAny('push'))
  t.ok(ring.find(a.key).grants.everywhere.has('pop'), 'a grant of a later release is ignored')
})

test('without the database known keys stay valid for an hour, and unknown ones are not refused as such', async (t) => {
  const { ring, time } = ringAt()
  const a = keyNamed('a')
  const later = keyNamed('later')
  ring.update(tableOf(a.live))
  time.ms += 16_000
  t.match(ring.find(a.key), { name: 'a' })
  t.throws(() => ring.find(later.key), { code: 'database_unavailable' })
  t.throws(() => ring.find('rouse_mistyped'), { code: 'unauthenticated' }, 'not a key at all')
  const forged = `${a.key.slice(0, 19)}${later.key.slice(19)}`
  t.throws(() => ring.find(forged), { code: 'unauthenticated' }, 'the id is known')
  time.ms += hourMs
  t.throws(() => ring.find(a.key), { code: 'database_unavailable' })
  ring.update(undefined)
  t.match(ring.find(a.key), { name: 'a' })
  t.throws(() => ring.find(later.key), { code: 'unauthenticated' })
})

test('a table that the primary read long ago is old from the start, as after a worker was restarted', async (t) => {
  const { ring } = ringAt()
  const a = keyNamed('a')
  ring.update(tableOf(a.live), 16_000)
  t.match(ring.find(a.key), { name: 'a' })
  t.throws(() => ring.find(keyNamed('b').key), { code: 'database_unavailable' })
  ring.update(tableOf(a.live), hourMs + 1)
  t.throws(() => ring.find(a.key), { code: 'database_unavailable' })
})

test('a used key is reported once a day', async (t) => {
  const { ring, time } = ringAt()
  const a = keyNamed('a')
  ring.update(tableOf(a.live))
  ring.find(a.key)
  ring.find(a.key)
  t.same(ring.takeUsed(), [a.live.id])
  ring.find(a.key)
  t.same(ring.takeUsed(), [], 'the same day')
  time.ms += 24 * hourMs
  ring.update(undefined)
  t.same(ring.takeUsed(), [])
  ring.find(a.key)
  t.same(ring.takeUsed(), [a.live.id])
})

test('a node proves its membership for a minute, with the right to read stats only', async (t) => {
  const { ring, time } = ringAt()
  t.equal(ring.findNode(ring.signForNode()), undefined, 'before the secret is known')
  ring.update(tableOf())
  const credential = ring.signForNode()
  const { ring: other } = ringAt()
  other.update({ ...tableOf(), nodeSecret: '11'.repeat(32) })
  t.equal(other.findNode(credential), undefined, 'another cluster')
  const node = ring.findNode(credential)
  t.ok(node?.grants.everywhere.has('observe'))
  for (const verb of ['push', 'pop', 'peek', 'manage', 'admin'] as const) {
    t.notOk(node?.grants.coversAny(verb), verb)
  }
  t.equal(ring.findNode(credential.replace(/.$/, (last) => (last === '0' ? '1' : '0'))), undefined)
  t.equal(ring.findNode(credential.replace('1000000', '1000001')), undefined, 'another time')
  time.ms += 60_001
  t.equal(ring.findNode(credential), undefined, 'too old')
})

test('credentials are compared in constant time, and by nothing else', async (t) => {
  const { ring } = ringAt()
  const a = keyNamed('a')
  ring.update(tableOf(a.live))
  const forged = `${a.key.slice(0, -1)}${a.key.endsWith('0') ? '1' : '0'}`
  const node = ring.signForNode()
  const forgedNode = node.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  const original = crypto.timingSafeEqual
  let calls = 0
  const replaceBy = (result: boolean | undefined) => {
    crypto.timingSafeEqual = (x, y) => {
      calls += 1
      return result ?? original(x, y)
    }
    syncBuiltinESMExports()
  }
  t.teardown(() => {
    crypto.timingSafeEqual = original
    syncBuiltinESMExports()
  })
  replaceBy(false)
  t.throws(() => ring.find(a.key), { code: 'unauthenticated' })
  t.equal(ring.findNode(node), undefined)
  replaceBy(undefined)
  ring.find(a.key)
  t.throws(() => ring.find(forged), { code: 'unauthenticated' })
  t.equal(ring.findNode(forgedNode), undefined)
  t.equal(calls, 5, 'one comparison each, also once the key was shown')
  replaceBy(true)
  t.match(ring.find(forged), { name: 'a' }, 'this comparison alone decides')
  t.ok(ring.findNode(forgedNode))
})
