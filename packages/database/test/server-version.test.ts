import { test } from 'tap'
import { checkServerVersion } from '../src/index.ts'
import { isTooOld } from '../src/server-version.ts'
import { emptyDatabase } from './support/server.ts'

test('PostgreSQL 15 is the oldest supported version', async (t) => {
  for (const number of [90_624, 130_023, 140_000, 140_023]) {
    t.equal(isTooOld({ number, name: '' }), true, `${number}`)
  }
  for (const number of [150_000, 150_018, 180_004, 190_000]) {
    t.equal(isTooOld({ number, name: '' }), false, `${number}`)
  }
})

test('the server reports its version', async (t) => {
  const { pool } = await emptyDatabase(t)
  const { number, name } = await checkServerVersion(pool)
  t.ok(number >= 150_000)
  t.match(name, new RegExp(`^${Math.floor(number / 10_000)}`))
})
