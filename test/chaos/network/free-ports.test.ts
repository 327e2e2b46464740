import { test } from 'tap'
import { freePorts } from './free-ports.ts'

test('ports that were given once are not given again, though nobody uses them', async (t) => {
  const given = await Promise.all(Array.from({ length: 20 }, () => freePorts(6)))
  t.equal(new Set(given.flat()).size, 20 * 6)
})
