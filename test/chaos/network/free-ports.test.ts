import { test } from 'tap'
import { freePorts } from './free-ports.ts'

test('a port is handed out only once, even if it is not in use', async (t) => {
  const given = await Promise.all(Array.from({ length: 20 }, () => freePorts(6)))
  t.equal(new Set(given.flat()).size, 20 * 6)
})
