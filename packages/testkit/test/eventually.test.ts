import { test } from 'tap'
import { eventually } from '../src/index.ts'

test('eventually resolves with the first truthy result', async (t) => {
  let asked = 0
  const answer = await eventually(() => (asked++ < 2 ? undefined : `answer ${asked}`), {
    intervalMs: 1,
  })
  t.equal(answer, 'answer 3')
})

test('eventually treats an error as not yet', async (t) => {
  let asked = 0
  const answer = await eventually(
    async () => {
      asked += 1
      if (asked < 3) throw new Error('not yet')
      return asked
    },
    { intervalMs: 1 },
  )
  t.equal(answer, 3)
})

test('eventually fails with the last result', async (t) => {
  await t.rejects(
    eventually(() => 0, { timeoutMs: 5, intervalMs: 1 }),
    { message: 'still false after 5 ms; last result 0' },
  )
})

test('eventually fails with the last error', async (t) => {
  const cause = new Error('the reason')
  await t.rejects(
    eventually(() => Promise.reject(cause), { timeoutMs: 5, intervalMs: 1 }),
    { message: /the reason/, cause },
  )
})
