// API keys in the database: the first key, revocation, expiry, and what nodes read.
import {
  createKey,
  findKey,
  listKeys,
  markKeysUsed,
  type NewKey,
  readKeyTable,
  revokeKey,
} from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import { test } from 'tap'

const key = (id: string, more: Partial<NewKey> = {}): NewKey => ({
  id: id.padEnd(12, '0'),
  name: 'shop',
  hash: Buffer.alloc(32, id),
  grants: ['push:orders'],
  limits: {},
  createdBy: 'me',
  expiresAt: null,
  ...more,
})

test('nodes read live keys only, and whether there has ever been one', async (t) => {
  const { pool, freezeClock, advanceClock } = await testDatabase(t)
  await freezeClock('2026-01-01T00:00:00Z')
  const empty = await readKeyTable(pool)
  t.match(empty, { hasKeys: false, keys: [], nodeSecret: /^[0-9a-f]{64}$/ })
  await createKey(pool, key('a'))
  await createKey(pool, key('b', { expiresAt: new Date('2026-01-01T01:00:00Z') }))
  const both = await readKeyTable(pool)
  t.same(both.keys, [
    {
      id: 'a00000000000',
      name: 'shop',
      hash: '61'.repeat(32),
      grants: ['push:orders'],
      limits: {},
      expiresAtMs: null,
    },
    {
      id: 'b00000000000',
      name: 'shop',
      hash: '62'.repeat(32),
      grants: ['push:orders'],
      limits: {},
      expiresAtMs: Date.parse('2026-01-01T01:00:00Z'),
    },
  ])
  t.equal(both.nodeSecret, empty.nodeSecret)
  await advanceClock(3_600_000)
  t.same(
    (await readKeyTable(pool)).keys.map(({ id }) => id),
    ['a00000000000'],
  )
  t.equal(await revokeKey(pool, 'a00000000000'), true)
  t.equal(await revokeKey(pool, 'a00000000000'), false, 'only once')
  t.equal(await revokeKey(pool, 'b00000000000'), false, 'expired')
  t.match(await readKeyTable(pool), { hasKeys: true, keys: [] })
})

test('the initial key is stored only if there has never been a key', async (t) => {
  const { pool } = await testDatabase(t)
  const first = { onlyFirst: true }
  const stored = await Promise.all(['a', 'b', 'c'].map((id) => createKey(pool, key(id), first)))
  t.equal(stored.filter((isStored) => isStored).length, 1, 'one of three nodes')
  for (const { id } of await listKeys(pool, 10)) await revokeKey(pool, id)
  t.equal(await createKey(pool, key('d'), first), false, 'a revoked key counts')
  t.equal(await createKey(pool, key('d')), true)
  t.equal(await createKey(pool, key('d', { name: 'other' })), false, 'the id is taken')
  t.equal((await findKey(pool, key('d').id))?.name, 'shop')
})

test('a key that is replaced ends after the grace period, never later than it would have', async (t) => {
  const { pool, freezeClock, advanceClock } = await testDatabase(t)
  await freezeClock('2026-01-01T00:00:00Z')
  const soon = new Date('2026-01-01T00:00:10Z')
  await createKey(pool, key('a'))
  await createKey(pool, key('b', { expiresAt: soon }))
  t.equal(await revokeKey(pool, key('a').id, 60_000), true)
  t.equal(await revokeKey(pool, key('b').id, 60_000), true)
  t.same((await findKey(pool, key('b').id))?.expiresAt, soon)
  await advanceClock(59_999)
  t.same(
    (await readKeyTable(pool)).keys.map(({ id }) => id),
    [key('a').id],
  )
  await advanceClock(1)
  t.same((await readKeyTable(pool)).keys, [])
})

test('the day of the last use is stored, by UTC', async (t) => {
  const { pool, freezeClock } = await testDatabase(t)
  await freezeClock('2026-01-01T23:59:00Z')
  await createKey(pool, key('a'))
  await createKey(pool, key('b'))
  await pool.query(`set timezone = 'Asia/Tokyo'`)
  await markKeysUsed(pool, [key('a').id, 'unknown'])
  t.equal((await findKey(pool, key('a').id))?.lastUsedDay, '2026-01-01')
  t.equal((await findKey(pool, key('b').id))?.lastUsedDay, null)
})

test('ids, hashes and names of a wrong form are refused', async (t) => {
  const { pool } = await testDatabase(t)
  await t.rejects(createKey(pool, key('a', { hash: Buffer.alloc(31) })))
  await t.rejects(createKey(pool, { ...key('a'), id: 'short' }))
  await t.rejects(createKey(pool, { ...key('a'), id: 'with_under_s' }))
  await t.rejects(createKey(pool, key('a', { name: '' })), { code: 'RS400' })
  t.same(await listKeys(pool, 10), [])
})
