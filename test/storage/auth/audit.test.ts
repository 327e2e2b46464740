import { pruneAudit, readAudit, writeAudit } from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import { test } from 'tap'

const dayMs = 86_400_000
const entry = { principal: 'me', verb: 'manage', target: 'q', outcome: 'done' } as const

test('entries are read newest first, by filter and in pages', async (t) => {
  const { pool, freezeClock } = await testDatabase(t)
  await freezeClock('2026-01-01T00:00:00Z')
  await writeAudit(pool, 'n1', [entry, { ...entry, target: 'r', detail: { a: [1] } }])
  const more = { keyId: 'k', address: '::1', requestId: 'id', outcome: 'refused' } as const
  await writeAudit(pool, 'n2', [{ ...entry, principal: 'you', ...more }])
  const all = await readAudit(pool, { limit: 10 })
  t.match(all, [
    { node: 'n2', principal: 'you', keyId: 'k', address: '::1', requestId: 'id', detail: {} },
    { node: 'n1', target: 'r', detail: { a: [1] }, keyId: null },
    { node: 'n1', target: 'q', at: new Date('2026-01-01T00:00:00Z') },
  ])
  t.equal((await readAudit(pool, { limit: 10, principal: 'me' })).length, 2)
  t.equal((await readAudit(pool, { limit: 10, target: 'r' })).length, 1)
  t.equal((await readAudit(pool, { limit: 10, outcome: 'refused' })).length, 1)
  t.same(await readAudit(pool, { limit: 1, before: all[1]?.id }), [all[2]])
  await writeAudit(pool, 'n1', Array(10).fill(entry))
  const ids = (await readAudit(pool, { limit: 100 })).map(({ id }) => Number(id))
  t.same(
    ids,
    ids.toSorted((a, b) => b - a),
    'by number, not by text',
  )
})

test('old entries are removed, the oldest first, but none of the last day', async (t) => {
  const { pool, freezeClock, advanceClock } = await testDatabase(t)
  await freezeClock('2026-01-01T00:00:00Z')
  for (const target of ['a', 'b', 'c']) {
    await writeAudit(pool, 'n', [{ ...entry, target }])
    await advanceClock(dayMs)
  }
  t.equal(await pruneAudit(pool, 2 * dayMs, 1), 1)
  const targets = async () => (await readAudit(pool, { limit: 10 })).map(({ target }) => target)
  t.same(await targets(), ['c', 'b'])
  t.equal(await pruneAudit(pool, 0, 10), 1, 'whatever the caller wants')
  t.same(await targets(), ['c'])
})
