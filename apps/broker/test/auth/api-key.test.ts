import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { apiKeyHash, apiKeyId, newApiKey } from '../../src/auth/api-key.ts'

test('a key has the form that scanners look for, and its id can be read', async (t) => {
  const seen = new Set<string>()
  for (let i = 0; i < 1_000; i += 1) {
    const { id, key } = newApiKey(randomBytes)
    t.match(key, /^rouse_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}$/)
    if (apiKeyId(key) !== id) t.fail(key)
    seen.add(key)
  }
  t.equal(seen.size, 1_000)
})

test('a key with one wrong character is not a key', async (t) => {
  const { key } = newApiKey(randomBytes)
  for (let i = 0; i < key.length; i += 1) {
    const changed = key[i] === 'x' ? 'y' : 'x'
    const text = `${key.slice(0, i)}${changed}${key.slice(i + 1)}`
    if (apiKeyId(text) !== undefined) t.fail(`at ${i}`)
  }
  for (const text of ['', 'rouse_', key.slice(0, -1), `${key}0`, ` ${key}`, key.toLowerCase()]) {
    t.equal(apiKeyId(text), undefined)
  }
})

test('bytes that would favour some characters are dropped', async (t) => {
  let calls = 0
  const { key } = newApiKey((size) => {
    calls += 1
    return Buffer.alloc(size, calls % 2 === 1 ? 255 : 61)
  })
  t.match(key, /^rouse_z{12}_z{37}/)
  t.equal(calls, 4)
})

test('the stored hash is SHA-256 of the whole key', async (t) => {
  t.equal(
    apiKeyHash('abc').toString('hex'),
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})
